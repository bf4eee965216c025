#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/deaths.h"
#include "operator/core/buckets/failovers.h"
#include "operator/core/buckets/restores.h"
#include "operator/core/buckets/spread.h"
#include "operator/core/buckets/takeovers.h"
#include "operator/core/processes/roster.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// Which parameter servers hold which bucket: takes in what servers report and propose and what is
/// known of their deaths, settles what follows from it, and tells the members.
/// Threads: one thread at a time.
/// Source: docs/design/0002-replication.md.
class Placement {
 public:
  using TimePoint = Clock::TimePoint;

  /// Once all buckets have been served, the job waits for their other copies at most this long,
  /// whatever is lost meanwhile: servers that die again and again must not keep it from beginning.
  static constexpr std::chrono::milliseconds kCopyTime{10'000};

  /// The arguments must outlive this.
  Placement(const JobSettings& settings, JobState& state, Outbox& outbox, Roster& roster);

  // What happens. Settle draws the conclusions.

  /// `none_lives`: every process that an earlier controller has started is dead. `in_order`: they
  /// were told to stop, and have flushed.
  void Begin(bool none_lives, bool in_order, TimePoint now);
  void OnJoined();
  /// The slot has lost its process, which is no proof that it is dead.
  void OnLost(std::uint32_t slot, TimePoint now);
  void OnExited(Holder holder);
  /// Nobody can send again what the worker has pushed.
  void OnWorkerLost() { ForgetRetained(); }
  void OnStored(std::uint32_t slot, const StoredBuckets& stored);
  void OnProposals(std::uint32_t slot, const Proposals& proposals, TimePoint now);
  void OnReady(std::uint32_t slot, const BucketsReady& ready);
  void OnProgress(std::uint32_t slot, const ParameterServerProgress& progress);
  void OnDraining(std::uint32_t slot);
  /// By node: for members that name no zone themselves.
  void SetZones(std::map<std::string, std::string> zones);

  /// Decides take-overs, brings lost buckets back, gives advice. Errors, saying which bucket and
  /// why: DataLoss when one cannot come back; Aborted when one would come back with
  /// nothing since the newest checkpoint, and the job is better off there.
  absl::Status Settle(TimePoint now);

  /// Whether a job that ends now has a checkpoint to go back to when it is resumed.
  [[nodiscard]] bool MayGoBackLater() const;

  /// The message of Settle's error, and what a person can do where the job does not help itself.
  [[nodiscard]] std::string WhatHelps(const absl::Status& why) const;

  /// The job has begun under this controller: from now on a lost bucket does not roll back the
  /// whole job to its checkpoint.
  void OnJobBegun() { may_roll_back_ = went_back_ = ended_in_order_ = false; }

  /// Every process is being ended, and the state says that the job goes back: when new ones run on
  /// all disks that have the checkpoint, Settle rolls all buckets back to it.
  void OnGoingBack();

  /// Settle has done so, and the job has not begun since.
  [[nodiscard]] bool went_back() const { return went_back_; }

  /// Whether Settle has brought all buckets back as the checkpoint has them, since the last call.
  bool TakeRolledBack() { return std::exchange(rolled_back_, false); }

  /// When Settle should be called though nothing has happened.
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return timer_; }

  /// Every bucket is served and has its copies, or as many as can be had for now.
  [[nodiscard]] bool IsComplete(TimePoint now) const;

  /// Every bucket is served and has its copies on servers that run.
  [[nodiscard]] bool HasAllCopies() const;

  /// Of the members of its record those that run.
  [[nodiscard]] std::size_t LiveCopiesOf(std::uint32_t bucket) const;

  /// Of each server of an earlier controller it is known whether it runs.
  [[nodiscard]] bool KnowsWhoRuns() const;

  /// A bucket cannot do without the disk of this slot: of its other members none runs, or too few
  /// to leave this one out while nothing proves its death, as whoever opens the disk next would. So
  /// it is with a bucket that nobody has served yet: it goes to another server only when that is
  /// proved.
  [[nodiscard]] bool NeedsDiskOf(std::uint32_t slot) const;

  /// Sends the whole view to everybody, under a new version; PublishChanges only if records have
  /// changed since, else it repeats the view to those who do not know it.
  void Publish();
  void PublishChanges();

  [[nodiscard]] const Configurations& configurations() const { return configurations_; }
  [[nodiscard]] const Failovers& failovers() const { return failovers_; }
  [[nodiscard]] Load LoadOfServers() const {
    return {configurations_.records(), settings_.parameter_servers};
  }
  [[nodiscard]] double OldestUnflushed(std::uint32_t slot) const;

 private:
  [[nodiscard]] Holder HolderOf(std::uint32_t slot) const;
  [[nodiscard]] bool Runs(Holder holder) const;
  [[nodiscard]] std::vector<Spread::Server> Servers() const;
  [[nodiscard]] Membership View() const;
  void OnServing(Holder holder, const BucketState& state);
  void ServeAgain(std::uint32_t bucket, const BucketState& state, bool restored);
  void DecideTakeovers(TimePoint now);
  void TellRestored();
  absl::Status BringBack(const std::vector<Spread::Server>& servers, TimePoint now);
  [[nodiscard]] absl::StatusOr<std::optional<Restores::Source>> SourceOf(
      std::uint32_t bucket,
      const std::vector<Spread::Server>& servers,
      const Load& load,
      TimePoint now) const;
  absl::Status Restore(const Restores::Sources& sources, bool all_known);
  [[nodiscard]] absl::Status CheckLosses(const Restores::Sources& sources) const;
  void ForgetRetained();
  [[nodiscard]] bool IsLost(std::uint32_t bucket) const;
  absl::Status OnNobodyHas(const absl::Status& why, bool disks_have_checkpoint);
  [[nodiscard]] bool HasCheckpointRunning() const;
  [[nodiscard]] bool MayReadCheckpoint() const;
  [[nodiscard]] std::uint64_t KnownUpdates(std::uint32_t bucket) const;
  void RollBack();
  void Plan(const std::vector<Spread::Server>& servers, TimePoint now);

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  Roster& roster_;

  Configurations configurations_;
  Deaths deaths_;
  Takeovers takeovers_;
  Restores restores_;
  Failovers failovers_;
  const Spread spread_;

  std::map<std::uint32_t, std::uint64_t> rejected_;  // bucket → epoch that its primary cannot serve
  std::set<std::uint32_t> draining_;                 // slots
  std::map<std::string, std::string> zones_;         // by node
  std::vector<TimePoint> away_since_;                // by slot, of those that do not run
  // By slot, the incarnation that has marked its disk: nobody is named in a record before, so that
  // whoever opens the disk later proves that those who are named have ended.
  std::vector<std::uint64_t> opened_;
  std::map<std::uint32_t, double> unflushed_;  // by slot
  // By slot of those that had not one complete bucket on their disk: the newest checkpoint then.
  std::map<std::uint32_t, std::uint64_t> empty_disks_;
  // By bucket: of its updates up to this one, no worker may be left that can send them again.
  std::vector<std::uint64_t> not_retained_;
  bool all_served_ = false;
  std::optional<TimePoint> first_served_;  // when all were, for the first time
  std::optional<TimePoint> timer_;
  bool unsettled_ = false;
  bool may_roll_back_ = false;
  bool ended_in_order_ = false;
  bool went_back_ = false;
  bool at_checkpoint_ = false;  // rolled back to it, and not all buckets have been served since
  // Of buckets that came back from disk and are not told of together yet.
  struct Restored {
    std::set<std::uint32_t> buckets;  // some come back again before all are back
    std::set<std::uint32_t> less;     // those of them that lost updates
    std::uint64_t updates = 0;        // that these lost
  };
  Restored restored_;
  bool rolled_back_ = false;
  bool changed_ = false;              // records, since the last publication
  std::set<std::uint32_t> outdated_;  // slots whose proposals were for records that have changed
  std::uint32_t versions_ = 0;        // published under this term
};

}  // namespace adamant::controller
