#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/rpc/inbox.h"
#include "services/worker/rpc/link.h"

namespace adamant::v1 {
class ExchangeRequest;
}  // namespace adamant::v1

namespace adamant::processes {

/// A worker's streams to the parameter servers of a job, and which of them is primary of what.
/// Threads: the inbox's; what happens on the streams is posted there.
class LoadServers {
 public:
  struct Identity {
    std::uint64_t job_uid = 0;
    std::uint32_t slot = 0;
    Incarnation incarnation = 0;
  };

  struct Handlers {
    std::function<void(std::uint32_t server)> on_lost;  ///< what it was asked stays unanswered
    std::function<void(const rpc::IncomingFrame&)> on_reply;
  };

  /// `inbox` must outlive this, and run no task afterwards.
  LoadServers(const Identity& identity, worker::Inbox& inbox, Handlers handlers);

  /// Returns false when it is no news.
  bool Update(const protocol::Membership& membership);

  /// Whether a map has come yet.
  [[nodiscard]] bool known() const { return !routes_.empty(); }

  struct Route {
    std::uint32_t server = 0;
    Incarnation incarnation = 0;
    ConfigurationVersion version = 0;  ///< of the bucket

    bool operator==(const Route&) const = default;
  };

  /// Whom to ask about the bucket; nullopt when none is known or connected.
  [[nodiscard]] std::optional<Route> RouteTo(BucketId bucket) const;

  /// To a server that RouteTo returned. May be lost with the stream.
  void Send(std::uint32_t server, const v1::ExchangeRequest& request, std::vector<float> values);

 private:
  struct Server {
    std::string address;
    Incarnation incarnation = 0;
    bool connected = false;
    std::unique_ptr<worker::Link> link;
  };

  void Connect(std::uint32_t slot, Server& server);
  void OnConnected(std::uint32_t slot, bool connected);

  const Identity identity_;
  worker::Inbox& inbox_;
  const Handlers handlers_;
  std::uint64_t version_ = 0;
  std::map<std::uint32_t, Server> servers_;
  std::vector<Route> routes_;  // by bucket
};

}  // namespace adamant::processes
