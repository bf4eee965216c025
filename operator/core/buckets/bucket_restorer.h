#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/buckets/balancer.h"
#include "operator/core/buckets/checkpoint_return.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/dead_servers.h"
#include "operator/core/buckets/parameter_servers.h"
#include "operator/core/buckets/restores.h"
#include "operator/core/diagnosis/restored_buckets.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Restores buckets that have lost all replicas: each from a disk or from the checkpoint, or all
/// together from the checkpoint.
/// Threads: one thread at a time.
/// Source: docs/design/0002-replication.md, docs/design/0010-divergence.md.
class BucketRestorer {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  BucketRestorer(const JobSettings& settings,
                 JobState& state,
                 Outbox& outbox,
                 Configurations& configurations,
                 const DeadServers& dead_servers,
                 const ParameterServers& servers,
                 CheckpointReturn& checkpoint_return);

  // --- What happens

  /// A controller begins. `in_order`: all servers had flushed before they ended.
  void Begin(bool in_order);

  /// The job has begun under this controller.
  void OnJobBegun() { restored_.OnJobBegun(); }

  /// Every process is being ended, and the state says that the job goes back.
  void OnGoingBack() { restored_.Forget(); }

  /// Nobody can send again what workers have pushed so far.
  void ForgetRetained();

  /// Takes in what the disk of this process holds.
  void OnStored(ServerId server, const StoredBuckets& stored);

  /// The slot has lost its process.
  void OnLost(std::uint32_t slot) { restores_.Forget(slot); }

  /// The server says that it does not have the bucket. Returns whether that is news.
  bool OnRejected(ServerId server, const BucketState& state);

  /// The bucket is served.
  void OnServed(BucketId bucket) { restores_.OnServed(bucket); }

  /// The bucket that is served came back. `updates`: that it has; `lost`: that it had before.
  void OnRestored(BucketId bucket, std::uint64_t updates, std::uint64_t lost);

  // --- What follows

  /// The state says that the job goes back: sets all buckets back to its checkpoint, once. False:
  /// not all disks that have it are open yet.
  bool GoBack();

  /// Decides who serves buckets that are lost. Errors: as Placement::Settle.
  absl::Status BringBack(const std::vector<Balancer::Server>& servers, TimePoint now);

  /// Tells people of buckets that came back, when all are back.
  void TellRestored();

  /// The configurations name learners, perhaps new ones: what their disks had counts no more.
  void OnHinted();

  /// As Restores.
  [[nodiscard]] std::optional<DiskWait> WaitsForDisks() const { return restores_.WaitsForDisks(); }

  /// Returns when BringBack may decide otherwise without another report.
  [[nodiscard]] std::optional<TimePoint> NextTimer(TimePoint now) const {
    return restores_.NextTimer(now);
  }

 private:
  [[nodiscard]] bool IsLost(BucketId bucket) const;
  [[nodiscard]] absl::StatusOr<std::optional<Restores::Source>> SourceOf(
      BucketId bucket,
      const std::vector<Balancer::Server>& servers,
      const Load& load,
      TimePoint now) const;
  [[nodiscard]] absl::Status CheckLosses(const Restores::Sources& sources) const;
  absl::Status Restore(const Restores::Sources& sources, bool all_known);
  absl::Status OnNobodyHas(const absl::Status& why, bool disks_have_checkpoint);
  [[nodiscard]] std::uint64_t KnownUpdates(BucketId bucket) const;
  void ReturnToCheckpoint();

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  Configurations& configurations_;
  const DeadServers& dead_servers_;
  const ParameterServers& servers_;
  CheckpointReturn& checkpoint_return_;

  Restores restores_;
  RestoredBuckets restored_;
  std::map<std::uint32_t, std::uint64_t>
      rejected_;  // bucket → configuration that its primary cannot serve
  // By bucket: of its updates up to this one, no worker may be left that can send them again.
  std::vector<std::uint64_t> not_retained_;
};

}  // namespace adamant::controller
