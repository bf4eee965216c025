#include "tests/simulation/job/processes/parameter_server/storage_loop.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"

namespace adamant::simulation {
namespace {

/// Between the time that something for the disk is wanted or due and the time that it is done.
constexpr auto kDiskTime = milliseconds(20);

}  // namespace

StorageLoop::StorageLoop(World& world,
                         MemberProcess& owner,
                         parameter_server::ParameterServer& core,
                         Disk& disk,
                         std::function<void()> on_done)
    : world_(world), owner_(owner), core_(core), disk_(disk), on_done_(std::move(on_done)) {}

void StorageLoop::Want() {
  Plan(world_.scheduler.Now() + world_.scheduler.Random(milliseconds(1), kDiskTime));
}

void StorageLoop::Take(const controller::TakeSnapshot& take) {
  snapshots_.push_back(take);
  Want();
}

void StorageLoop::Close() {
  if (std::exchange(open_, false)) {
    Flush().IgnoreError();  // the process ends in any case
  }
}

void StorageLoop::Plan(Clock::TimePoint time) {
  if (!open_ || (turn_at_.has_value() && *turn_at_ <= time)) {
    return;
  }
  const Clock::TimePoint now = world_.scheduler.Now();
  turn_at_ = std::max(time, now);
  if (now < disk_.slow_until) {
    *turn_at_ += world_.scheduler.Random(milliseconds(1), Disk::kSlow);
  }
  world_.scheduler.At(*turn_at_, owner_.life, [this, at = *turn_at_] {
    if (turn_at_ == at) {
      Turn();
    }
  });
}

void StorageLoop::PlanBy(Clock::TimePoint local) {
  if (local != Clock::TimePoint::max()) {
    Plan(owner_.clock().ToWorld(local));
  }
}

void StorageLoop::Turn() {
  turn_at_.reset();
  if (!open_) {
    return;
  }
  if (const absl::Status status = DoDue(); !status.ok()) {
    open_ = false;  // what is on the disk is unknown
    return owner_.Fail(status);
  }
  on_done_();
  PlanBy(core_.StorageDueAt());
  if (!world_.Has(Mutation::kNeverFlushes)) {
    PlanBy(core_.flusher().DueAt());
  }
}

absl::Status StorageLoop::DoDue() {
  if (!read_) {
    const absl::Status status = core_.ReadStored();
    if (absl::IsResourceExhausted(status)) {
      Plan(world_.scheduler.Now() + kRetry);
      return absl::OkStatus();
    }
    ADAMANT_RETURN_IF_ERROR(status);
    read_ = true;
    owner_.Tell(core_.Stored());
  }
  ADAMANT_RETURN_IF_ERROR(core_.DoStorage());
  for (const controller::TakeSnapshot& take : std::exchange(snapshots_, {})) {
    ADAMANT_RETURN_IF_ERROR(TakeOne(take));
  }
  return core_.flusher().DueAt() <= owner_.clock().Now() ? Flush() : absl::OkStatus();
}

absl::Status StorageLoop::TakeOne(const controller::TakeSnapshot& take) {
  const auto taken = core_.TakeSnapshot({.snapshot = take.snapshot,
                                         .keep_from = take.keep_from,
                                         .keep = take.keep,
                                         .generations = take.generations});
  if (absl::IsDataLoss(taken.status())) {
    return taken.status();
  }
  controller::SnapshotTaken answer{.snapshot = take.snapshot,
                                   .ok = taken.ok(),
                                   .error = std::string(taken.status().message()),
                                   .buckets = {},
                                   .disk_full = absl::IsResourceExhausted(taken.status())};
  for (std::size_t i = 0; taken.ok() && i < taken->size(); ++i) {
    answer.buckets.push_back((*taken)[i]);
    ADAMANT_RETURN_IF_ERROR(ShowStored(take.snapshot, (*taken)[i].bucket));
  }
  owner_.Tell(std::move(answer));
  return absl::OkStatus();
}

// Shows the checker what is in a snapshot.
absl::Status StorageLoop::ShowStored(std::uint64_t snapshot, BucketId bucket) {
  for (const Shard& shard : core_.layout().shards()) {
    if (shard.bucket == bucket) {
      ADAMANT_ASSIGN_OR_RETURN(const std::vector<float> values,
                               disk_.ReadSnapshot(core_.options().job_uid, snapshot, shard));
      world_.updates.SnapshotStored(snapshot, owner_.start().id.slot, shard.id, values);
    }
  }
  return absl::OkStatus();
}

absl::Status StorageLoop::Flush() {
  if (world_.Has(Mutation::kNeverFlushes)) {
    return absl::OkStatus();
  }
  const std::uint64_t before = core_.flusher().totals().flushes;
  ADAMANT_RETURN_IF_ERROR(core_.Flush());
  if (core_.flusher().totals().flushes > before) {
    world_.scheduler.Record(owner_.life->name, "has flushed");
  }
  return absl::OkStatus();
}

}  // namespace adamant::simulation
