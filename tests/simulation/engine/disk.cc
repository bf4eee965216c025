#include "tests/simulation/engine/disk.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "services/parameter_server/core/storage/snapshots.h"

namespace adamant::simulation {

std::string Disk::Open() {
  if (std::exchange(damaged_, false)) {
    store_.emplace();
    store_->SetFull(full_);
    store_->SetLying(lying_);
    return "the log of the store is damaged";
  }
  store_->Crash(std::exchange(survivors_, 0));
  return "";
}

void Disk::SetFull(bool full) {
  full_ = full;
  store_->SetFull(full);
}

void Disk::SetLying(bool lying) {
  lying_ = lying;
  store_->SetLying(lying);
}

void Disk::Close(std::size_t survivors) { survivors_ = survivors; }

void Disk::LosePower(std::size_t survivors) { store_->LosePower(survivors); }

absl::Status Disk::LoseSnapshots() {
  std::vector<storage::Change> changes;
  for (const std::string prefix : {"snapshot/", "snapshots/"}) {
    changes.push_back({.key = prefix, .value = "", .erase = true, .end = prefix + "\xff"});
  }
  return store_->Write(changes);
}

absl::StatusOr<std::vector<float>> Disk::ReadSnapshot(std::uint64_t job_uid,
                                                      std::uint64_t snapshot,
                                                      const Shard& shard) {
  ADAMANT_ASSIGN_OR_RETURN(
      parameter_server::ShardContent content,
      parameter_server::Snapshots(job_uid, *this)
          .LoadShard(snapshot,
                     shard.bucket,
                     {.job_uid = job_uid, .shard = shard.id, .values = shard.size()}));
  return std::move(content.values);
}

}  // namespace adamant::simulation
