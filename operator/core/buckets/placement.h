#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/buckets/balancer.h"
#include "operator/core/buckets/bucket_copies.h"
#include "operator/core/buckets/bucket_restorer.h"
#include "operator/core/buckets/checkpoint_return.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/dead_servers.h"
#include "operator/core/buckets/failovers.h"
#include "operator/core/buckets/parameter_servers.h"
#include "operator/core/buckets/promotions.h"
#include "operator/core/processes/membership_publisher.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Map of buckets to the parameter servers that hold them: takes in what servers report and propose
/// and what is known of their deaths, settles what follows from it, and tells the replicas.
/// Threads: one thread at a time.
/// Source: docs/design/0002-replication.md.
class Placement {
 public:
  using TimePoint = Clock::TimePoint;

  /// The arguments must outlive this.
  Placement(const JobSettings& settings, JobState& state, Outbox& outbox, ProcessTable& processes);

  // What happens. Settle draws the conclusions.

  /// `none_lives`: every process that an earlier controller has started is dead. `in_order`: they
  /// were told to stop, and have flushed.
  void Begin(bool none_lives, bool in_order, TimePoint now);
  void OnJoined();
  /// The slot has lost its process, which is no proof that it is dead.
  void OnLost(std::uint32_t slot, TimePoint now);
  void OnExited(ServerId server);
  /// Nobody can send again what the worker has pushed.
  void OnWorkerLost() { restorer_.ForgetRetained(); }
  void OnStored(std::uint32_t slot, const StoredBuckets& stored);
  void OnProposals(std::uint32_t slot, const Proposals& proposals, TimePoint now);
  void OnReady(std::uint32_t slot, const BucketsReady& ready);
  void OnProgress(std::uint32_t slot, const ParameterServerProgress& progress);
  void OnDraining(std::uint32_t slot);
  /// By node: for replicas that name no zone themselves.
  void SetZones(std::map<std::string, std::string> zones);

  /// Decides promotions, brings lost buckets back, gives hints. Errors, saying which bucket and
  /// why: DataLoss when one cannot come back; Aborted when one would come back with
  /// nothing since the newest checkpoint, and the job is better off there.
  absl::Status Settle(TimePoint now);

  /// The job has begun under this controller: from now on a lost bucket does not set back the
  /// whole job to its checkpoint.
  void OnJobBegun();

  /// Every process is being ended, and the state says that the job goes back: when new ones run on
  /// all disks that have the checkpoint, Settle sets all buckets back to it.
  void OnGoingBack();

  /// Returns true if Settle has brought all buckets back to the checkpoint since the last call.
  bool TakeReturned() { return checkpoint_return_.TakeReturned(); }

  /// Returns when Settle should be called though nothing has happened.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return timer_; }

  /// As MembershipPublisher does; what has changed are configurations.
  void Publish() { publisher_.Publish(); }
  void PublishChanges() { publisher_.PublishChanges(); }

  [[nodiscard]] const Configurations& configurations() const { return configurations_; }
  [[nodiscard]] const Failovers& failovers() const { return failovers_; }
  [[nodiscard]] const ParameterServers& servers() const { return servers_; }
  [[nodiscard]] const BucketCopies& copies() const { return copies_; }
  [[nodiscard]] std::optional<DiskWait> WaitsForDisks() const { return restorer_.WaitsForDisks(); }
  [[nodiscard]] const CheckpointReturn& checkpoint_return() const { return checkpoint_return_; }

 private:
  void OnServing(ServerId server, const BucketState& state);
  void ServeAgain(BucketId bucket, const BucketState& state, bool restored);
  void DecidePromotions(TimePoint now);
  void Plan(const std::vector<Balancer::Server>& servers, TimePoint now);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;

  Configurations configurations_;
  DeadServers dead_servers_;
  Promotions promotions_;
  Failovers failovers_;
  const Balancer balancer_;
  ParameterServers servers_;
  BucketCopies copies_;
  CheckpointReturn checkpoint_return_;
  BucketRestorer restorer_;
  MembershipPublisher publisher_;

  std::optional<TimePoint> timer_;
  bool unsettled_ = false;
};

}  // namespace adamant::controller
