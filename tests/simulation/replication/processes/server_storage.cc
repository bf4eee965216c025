#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/processes/server_process.h"
#include "tests/simulation/replication/world/inside.h"

// A server and its disk.
namespace adamant::replication_simulation {
namespace {

constexpr auto kReadAgain = seconds(1);
constexpr char kShards[] = "shard/";

}  // namespace

// --- The beginning

void ServerProcess::OpenDisk() {
  ps::ParameterServerOptions options = world_.setup.ParameterServerOptions(server_, attempt_);
  options.damage = disk_.Open();
  if (!options.damage.empty()) {
    world_.scheduler.Record(life->name, options.damage);
  }
  sabotage_.Distort(options);
  ps::Driver& driver = *this;
  core_.emplace(std::move(options), volume_, clock_, driver);
  tap_.emplace(world_, server_, *core_, sabotage_, [this](BucketId bucket, std::uint32_t slot) {
    return cluster_.SafeBefore(bucket, slot);
  });
  ReadDisk();
}

void ServerProcess::ReadDisk() {
  tap_->LookAtStored(volume_);
  const absl::Status status = core_->ReadStored();
  if (absl::IsResourceExhausted(status)) {
    return world_.scheduler.After(kReadAgain, life, [this] { ReadDisk(); });
  }
  if (!status.ok()) {
    return cluster_.End(*this);
  }
  open_ = true;
  ReportStored();
  Heartbeat();
  Tick();
  PlanStorage(clock_.ToWorld(core_->scrubber().DueAt()));
  if (membership_.has_value()) {
    OnMembership(*std::exchange(membership_, std::nullopt));
  }
}

void ServerProcess::ReportStored() { Tell(core_->Stored()); }

// --- What is written

void ServerProcess::OnWrite(std::vector<storage::Change>& changes) {
  sabotage_.Distort(changes);
  for (const storage::Change& change : changes) {
    if (change.erase || !change.key.starts_with(kShards)) {
      continue;
    }
    for (ShardId shard = 0; shard < world_.setup.shards(); ++shard) {
      if (change.key == ps::LiveShardKey(shard)) {
        world_.checker.Leaves(server_, shard, change.value);
      }
    }
  }
}

// --- The thread that waits for the disk

void ServerProcess::WantStorage() {
  PlanStorage(world_.scheduler.Now() + world_.scheduler.Random(microseconds(100), milliseconds(5)));
}

void ServerProcess::PlanStorage(Clock::TimePoint time) {
  const Clock::TimePoint at = std::max(time, world_.scheduler.Now()) + disk_.latency();
  if (storage_at_.has_value() && *storage_at_ <= at) {
    return;
  }
  storage_at_ = at;
  world_.scheduler.At(at, life, [this, at] {
    if (storage_at_ == at) {
      storage_at_.reset();
      DoStorage();
    }
  });
}

void ServerProcess::DoStorage() {
  if (!open_) {
    return;
  }
  tap_->LookAtLoads(volume_);
  const absl::Status status = DoDue();
  if (!status.ok()) {
    world_.scheduler.Record(life->name, "cannot store: " + std::string(status.message()));
    return cluster_.End(*this);
  }
  Settle();
  Clock::TimePoint due = std::min(core_->StorageDueAt(), core_->scrubber().DueAt());
  if (!world_.Has(Mutation::kNeverFlushes)) {
    due = std::min(due, core_->flusher().DueAt());
  }
  if (due != Clock::TimePoint::max()) {
    PlanStorage(clock_.ToWorld(due));
  }
}

absl::Status ServerProcess::DoDue() {
  ADAMANT_RETURN_IF_ERROR(core_->DoStorage());
  for (const controller::TakeSnapshot& take : std::exchange(snapshots_, {})) {
    ADAMANT_RETURN_IF_ERROR(TakeSnapshot(take));
  }
  if (core_->scrubber().DueAt() <= clock_.Now()) {
    core_->Scrub();
  }
  const bool flush = core_->flusher().DueAt() <= clock_.Now();
  return flush && !world_.Has(Mutation::kNeverFlushes) ? core_->Flush() : absl::OkStatus();
}

absl::Status ServerProcess::TakeSnapshot(const controller::TakeSnapshot& take) {
  const auto taken = core_->TakeSnapshot({.snapshot = take.snapshot,
                                          .keep_from = take.keep_from,
                                          .keep = take.keep,
                                          .generations = take.generations});
  if (!taken.ok() && !absl::IsUnavailable(taken.status()) &&
      !absl::IsResourceExhausted(taken.status())) {
    return taken.status();
  }
  controller::SnapshotTaken answer{.snapshot = take.snapshot,
                                   .ok = taken.ok(),
                                   .error = std::string(taken.status().message()),
                                   .buckets = {},
                                   .disk_full = absl::IsResourceExhausted(taken.status())};
  for (std::size_t i = 0; taken.ok() && i < taken->size(); ++i) {
    answer.buckets.push_back((*taken)[i]);
    const BucketId id = (*taken)[i].bucket;
    SnapshotBooks::Entry entry{.configuration_version = (*taken)[i].configuration_version,
                               .versions = {},
                               .records = bucket(id)->content().records};
    for (const ps::LiveShardPtr& shard : bucket(id)->content().shards) {
      entry.versions.push_back(VersionOf(*shard));
    }
    world_.checker.snapshots().Taken(take.snapshot, slot_, id, std::move(entry));
  }
  Tell(std::move(answer));
  return absl::OkStatus();
}

}  // namespace adamant::replication_simulation
