#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "services/worker/core/base/messages.h"
#include "tests/bench/stale/stale_report.h"
#include "tests/bench/stale/virtual_worker.h"

namespace adamant::bench {

/// The virtual workers of a job, which come and go as a controller would have it. Threads: one.
class VirtualFleet {
 public:
  /// What `job` names must outlive this. `options_of`: of the worker in a slot, its incarnation
  /// apart.
  VirtualFleet(const VirtualJob& job,
               std::function<VirtualWorkerOptions(std::uint32_t)> options_of);

  /// From now on slots 0 to `workers` - 1 have a worker. Others are told to stop; new ones begin as
  /// a new process does, in the slot of one that is still about to stop when that has stopped. All
  /// hear at once how many there are. Errors: as VirtualWorker::Create.
  absl::Status Scale(std::uint32_t workers);

  /// Deals with workers that have stopped. Errors: what a worker cannot go on for; as Scale.
  absl::Status Advance();

  /// VirtualWorker::Wake, of all.
  void WakeAll();

  /// Adds what workers know, those that have left among them.
  void Tell(Moment& now) const;

 private:
  absl::Status StartMissing();
  [[nodiscard]] bool IsTaken(std::uint32_t slot) const;

  const VirtualJob job_;
  const std::function<VirtualWorkerOptions(std::uint32_t)> options_of_;
  worker::PlacementView placement_;
  std::vector<std::uint64_t> incarnations_;              // by slot: the last one
  std::vector<std::unique_ptr<VirtualWorker>> workers_;  // by age
  std::vector<std::unique_ptr<VirtualWorker>> leaving_;
  StalenessCounts left_{};  // staleness of those that are gone
};

}  // namespace adamant::bench
