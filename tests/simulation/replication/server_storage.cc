#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/shard_record.h"
#include "tests/simulation/replication/cluster.h"
#include "tests/simulation/replication/inside.h"
#include "tests/simulation/replication/server_process.h"
#include "tests/simulation/server_convert.h"

// A server and its disk.
namespace adamant::replication_simulation {
namespace {

constexpr auto kReadAgain = seconds(1);
constexpr char kShards[] = "shard/";

}  // namespace

// --- The beginning

void ServerProcess::OpenDisk() {
  ps::ServerOptions options = world_.setup.ServerOptions(holder_);
  options.damage = disk_.Open();
  if (!options.damage.empty()) {
    world_.scheduler.Record(life->name, options.damage);
  }
  sabotage_.Distort(options);
  disk_.on_write = [this](std::vector<storage::Change>& changes) { OnWrite(changes); };
  ps::Driver& driver = *this;
  core_.emplace(std::move(options), disk_, clock_, driver);
  tap_.emplace(world_, holder_, *core_, sabotage_, [this](BucketId bucket) {
    return cluster_.SafeBefore(bucket);
  });
  ReadDisk();
}

void ServerProcess::ReadDisk() {
  tap_->LookAtStored(disk_);
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
  PlanStorage(clock_.ToWorld(core_->ScrubDueAt()));
  if (membership_.has_value()) {
    OnMembership(*std::exchange(membership_, std::nullopt));
  }
}

void ServerProcess::ReportStored() { Tell(simulation::ToController(core_->Stored())); }

// --- What is written

void ServerProcess::OnWrite(std::vector<storage::Change>& changes) {
  sabotage_.Distort(changes);
  for (const storage::Change& change : changes) {
    if (change.erase || !change.key.starts_with(kShards)) {
      continue;
    }
    for (ShardId shard = 0; shard < world_.setup.shards(); ++shard) {
      if (change.key == ps::LiveShardKey(shard)) {
        world_.checker.Leaves(holder_, shard, change.value);
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
  tap_->LookAtLoads(disk_);
  const absl::Status status = DoDue();
  if (!status.ok()) {
    world_.scheduler.Record(life->name, "cannot store: " + std::string(status.message()));
    return cluster_.End(*this);
  }
  Settle();
  Clock::TimePoint due = std::min(core_->StorageDueAt(), core_->ScrubDueAt());
  if (!world_.Has(Mutation::kNeverFlushes)) {
    due = std::min(due, core_->flusher().DueAt());
  }
  if (due != Clock::TimePoint::max()) {
    PlanStorage(clock_.ToWorld(due));
  }
}

absl::Status ServerProcess::DoDue() {
  ADAMANT_RETURN_IF_ERROR(core_->DoStorage());
  if (core_->ScrubDueAt() <= clock_.Now()) {
    core_->Scrub();
  }
  const bool flush = core_->flusher().DueAt() <= clock_.Now();
  return flush && !world_.Has(Mutation::kNeverFlushes) ? core_->Flush() : absl::OkStatus();
}

}  // namespace adamant::replication_simulation
