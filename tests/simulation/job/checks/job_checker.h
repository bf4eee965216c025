#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/replication/messages.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

/// Watches what the controllers do, one after another: terms, incarnations, map versions, snapshots
/// and epochs rise; nobody in the membership trains while the epoch's snapshot is taken, and who
/// has left it is refused; no bucket is left to fewer than minInSync members by one that lives.
/// Threads: one.
class JobChecker {
 public:
  /// `violations` must outlive this.
  JobChecker(const Setup& setup, Violations& violations)
      : min_in_sync_(setup.job.min_in_sync), violations_(violations) {}

  /// `lives`: the process of a parameter server has not ended, whatever the controller knows.
  void WhoLives(std::function<bool(controller::ServerId)> lives) { lives_ = std::move(lives); }

  void Began(std::uint64_t term);

  /// There is none until the next begins: nobody copies anything.
  void Ended() { Forget(); }

  /// A process learns its incarnation.
  void Admitted(controller::SlotId id, Incarnation incarnation);

  void Sent(const controller::ControllerMessage& message);
  void EpochDone(const controller::EpochResult& row);
  void StateIs(const controller::JobState& state);

  /// The server that the controller takes for the bucket's primary applies an update of this
  /// worker.
  void Applied(std::uint32_t worker, Incarnation incarnation);

  /// Whether the controller takes this process for the bucket's primary. One that was replaced may
  /// go on for a while: what all copies had it commits late, what it stored it still gives.
  [[nodiscard]] bool IsPrimary(const parameter_server::ServerId& server, BucketId bucket) const;

 private:
  void Forget();
  void CheckDeparting(const controller::Configuration& before,
                      const controller::Configuration& now);
  void CheckWriters(const controller::TakeSnapshot& take);

  const std::uint32_t min_in_sync_;
  Violations& violations_;
  std::uint64_t term_ = 0;
  std::uint64_t map_version_ = 0;
  DataEpoch epoch_ = 0;
  std::uint64_t snapshot_ = 0;
  bool asked_ = false;  // this controller has asked for a snapshot
  controller::Step step_ = controller::Step::kTraining;
  std::set<std::pair<controller::SlotId, std::uint64_t>> admitted_;
  std::vector<std::uint64_t> incarnations_;          // by slot, as the controller remembers them
  std::vector<controller::Configuration> buckets_;   // as the controller wrote them last
  std::map<std::uint32_t, std::uint64_t> workers_;   // in the membership: incarnation by slot
  std::map<std::uint32_t, std::uint64_t> given_up_;  // by slot: the last incarnation that left it
  std::function<bool(controller::ServerId)> lives_;
};

}  // namespace adamant::simulation
