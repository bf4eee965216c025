#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "services/common/base/ids.h"
#include "tests/simulation/replication/processes/world.h"
#include "tests/simulation/replication/world/traffic.h"

namespace adamant::replication_simulation {

class Cluster;

/// A process that pushes to all buckets, some pushes at a time each, and asks until they are
/// answered. A new process in its place starts its sequences anew under a higher incarnation.
/// Threads: one.
class Writer {
 public:
  Writer(World& world, Cluster& cluster, std::uint32_t slot, Incarnation incarnation);

  void OnAnswer(const PushAnswer& answer);

  /// Begins no more pushes.
  void Stop() { stopped_ = true; }

  /// Begins none until it may again.
  void Pause(bool paused);
  [[nodiscard]] bool IsAtRest() const;

  const LifePtr life;

 private:
  struct Stream {
    std::map<ShardId, Sequence> next;       // sequence to send
    std::map<std::uint64_t, Push> pending;  // by id
    bool full = false;                      // begins when one is answered
    std::uint32_t target = 0;               // slot that is asked
  };

  void Begin(BucketId bucket);
  void Ask(BucketId bucket, std::uint64_t id);
  void PlanBegin(BucketId bucket);
  void GoBack(Stream& stream, const PushAnswer& answer);
  [[nodiscard]] static bool IsUnderWay(const Stream& stream, const PushAnswer::Ack& ack);

  World& world_;
  Cluster& cluster_;
  const ps::WorkerId self_;
  std::vector<Stream> streams_;  // by bucket
  bool stopped_ = false;
  bool paused_ = false;
};

}  // namespace adamant::replication_simulation
