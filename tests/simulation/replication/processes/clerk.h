#pragma once

#include <cstdint>
#include <string>

#include "services/common/base/ids.h"
#include "tests/simulation/replication/processes/world.h"
#include "tests/simulation/replication/world/traffic.h"

namespace adamant::replication_simulation {

class Cluster;

/// A process that keeps the record of one bucket, as a data server keeps its part of the ledger:
/// it writes by compare and swap, says a put again while it is not answered, and reads when another
/// has written.
/// Threads: one.
class Clerk {
 public:
  /// `number`: of all clerks. The record of bucket `number` modulo the number of buckets.
  Clerk(World& world, Cluster& cluster, std::uint32_t number);

  void OnAnswer(const RecordAnswer& answer);

  /// Writes no more.
  void Stop() { stopped_ = true; }

  /// Writes nothing until it may again.
  void Pause(bool paused) { paused_ = paused; }
  [[nodiscard]] bool IsAtRest() const { return request_.id == 0; }

  /// The job has gone back: nothing of what it asked for counts.
  void BeginAnew();

  const LifePtr life;

 private:
  void PlanWrite();
  void Begin(bool put);
  void Ask(std::uint64_t id);

  World& world_;
  Cluster& cluster_;
  const std::uint32_t number_;
  const BucketId bucket_;
  std::uint32_t target_ = 0;   // slot that is asked
  std::uint64_t version_ = 0;  // as far as it knows
  RecordRequest request_;      // under way; id 0: none
  std::uint64_t written_ = 0;  // makes values differ
  bool stopped_ = false;
  bool paused_ = false;
};

}  // namespace adamant::replication_simulation
