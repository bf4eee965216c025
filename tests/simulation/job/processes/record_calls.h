#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/core/state/messages.h"
#include "services/common/base/backoff.h"
#include "tests/simulation/job/processes/member_process.h"

namespace adamant::simulation {

/// A data server's calls to the records on the parameter servers: each on a stream of its own, and
/// repeated until it is answered.
/// Threads: one.
class RecordCalls {
 public:
  using Done = std::function<void(const RecordAnswer&)>;

  /// `owner` makes the calls and outlives this.
  RecordCalls(World& world, Endpoint& owner) : world_(world), owner_(owner) {}

  void OnMembership(const controller::Membership& view) { view_ = view; }

  void Call(const std::string& key, Message request, Done done);

  void OnAnswer(StreamId stream, const RecordAnswer& answer);
  void OnEnded(StreamId stream);

 private:
  struct Pending {
    std::string key;
    Message request;
    Done done;
    std::uint32_t tries = 0;
  };

  void Try(Pending call);
  void TryLater(Pending call);
  [[nodiscard]] std::string AddressFor(const std::string& key) const;

  World& world_;
  Endpoint& owner_;
  controller::Membership view_;
  std::map<StreamId, Pending> pending_;
};

}  // namespace adamant::simulation
