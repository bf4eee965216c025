#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/simulation/replication/content.h"
#include "tests/simulation/replication/world.h"

namespace adamant::replication_simulation {

class Cluster;

/// A process that pushes to all buckets, one push at a time each, and asks until it is answered. A
/// new process in its place starts its sequences anew under a higher incarnation.
/// Threads: one.
class Writer {
 public:
  Writer(World& world, Cluster& cluster, std::uint32_t slot, std::uint64_t incarnation);

  void OnAnswer(const PushAnswer& answer);

  /// Begins no more pushes.
  void Stop() { stopped_ = true; }

  const LifePtr life;

 private:
  struct Stream {
    std::vector<std::uint64_t> next;  // by shard: the sequence to send
    std::optional<Push> pending;
    std::uint32_t target = 0;  // slot that is asked
  };

  void Begin(std::uint32_t bucket);
  void Ask(std::uint32_t bucket);
  void PlanBegin(std::uint32_t bucket);

  World& world_;
  Cluster& cluster_;
  const ps::Writer self_;
  std::vector<Stream> streams_;  // by bucket
  bool stopped_ = false;
};

}  // namespace adamant::replication_simulation
