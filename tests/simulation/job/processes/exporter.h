#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// Reads a snapshot from all parameter servers, as operator/local does for the exported model.
/// Threads: one.
class Exporter {
 public:
  using Done = std::function<void(const absl::Status&)>;

  /// `owner` reads; it outlives this.
  Exporter(World& world, Endpoint& owner, std::uint64_t snapshot, Done done)
      : world_(world), owner_(owner), snapshot_(snapshot), done_(std::move(done)) {}

  /// `addresses` by parameter server, `primaries` by bucket.
  void Begin(const std::vector<std::string>& addresses,
             const std::vector<std::uint32_t>& primaries);

  void OnMessage(StreamId stream, const Message& message);
  void OnEnded(StreamId stream);

 private:
  void Finish(const absl::Status& status);

  World& world_;
  Endpoint& owner_;
  const std::uint64_t snapshot_;
  const Done done_;
  std::map<StreamId, std::uint32_t> servers_;  // not read yet
  bool finished_ = false;
};

}  // namespace adamant::simulation
