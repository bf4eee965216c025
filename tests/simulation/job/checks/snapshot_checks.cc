#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tests/simulation/job/checks/update_checker.h"

// Snapshots: what is asked for, what servers store, what is made a checkpoint, what is read.
namespace adamant::simulation {

void UpdateChecker::SnapshotAsked(std::uint64_t snapshot,
                                  std::span<const Incarnation> writers_from,
                                  std::span<const controller::Configuration> buckets) {
  CheckRest(snapshot, writers_from);
  Snapshot& asked = snapshots_[snapshot];
  const std::vector<std::uint64_t> before = asked.generations;
  std::vector<std::uint64_t> generations;
  for (const controller::Configuration& bucket : buckets) {
    generations.push_back(bucket.generation);
  }
  std::map<WorkerId, Sequence> cut;
  for (const auto& [key, push] : pushes_) {
    const auto& [worker, sequence] = key;
    if (worker.incarnation >= writers_from[worker.slot]) {
      cut[worker] = sequence;  // they come in their order
    }
  }
  // What was rolled back is flushed again by workers at rest; of one that is not there any more it
  // is lost.
  const bool anew = asked.flushes != flushes_ || (cut.empty() && before != generations);
  if (!before.empty() && !anew) {
    return;
  }
  asked.flushes = flushes_;
  asked.trained = trainings_.size();
  asked.writers_from.assign(writers_from.begin(), writers_from.end());
  asked.generations = generations;
  asked.cut = std::move(cut);
  for (const Shard& shard : setup_.layout.shards()) {
    const bool stored_before = !before.empty() && before[shard.bucket] == generations[shard.bucket];
    Expect(snapshot, shard.id, stored_before);
  }
}

// What has been acknowledged is in it; where it may have been stored before, what was pushed since
// by workers that were given up need not.
void UpdateChecker::Expect(std::uint64_t snapshot, ShardId shard, bool stored_before) {
  ShardState& state = shards_[shard];
  const std::vector<Incarnation>& writers_from = snapshots_[snapshot].writers_from;
  Present& expected = state.snapshots.try_emplace(snapshot, state.live).first->second;
  for (std::uint32_t element = 0; element < trainings_.size(); ++element) {
    const WorkerId worker = trainings_[element].worker;
    if (!stored_before || worker.incarnation >= writers_from[worker.slot]) {
      expected[element] = state.live[element];
    }
  }
}

// A worker at rest has been told that each of its pushes is in every shard. One that keeps updates
// until they are on disk has sent again what was lost since.
void UpdateChecker::CheckRest(std::uint64_t snapshot, std::span<const Incarnation> writers_from) {
  for (const auto& [key, push] : pushes_) {
    const auto& [worker, sequence] = key;
    if (worker.incarnation < writers_from[worker.slot] || before_.contains(worker)) {
      continue;
    }
    for (const worker::PushedShard& pushed : setup_.plan.pushed) {
      const ShardState& state = shards_[pushed.shard];
      const std::uint32_t element = push.elements.front();
      const bool lost = setup_.retain_bytes == 0 && state.lost[element] != 0;
      if (!push.acknowledged.contains(pushed.shard) || (state.live[element] == 0 && !lost)) {
        return Report("snapshot " + std::to_string(snapshot) + " is asked for, and push " +
                      std::to_string(sequence) + " of " + Name(worker) + " is not in shard " +
                      std::to_string(pushed.shard));
      }
    }
  }
}

void UpdateChecker::MadeAnew(std::uint64_t snapshot) {
  for (ShardState& state : shards_) {
    state.snapshots.try_emplace(snapshot, Present(Setup::kElements));
  }
}

void UpdateChecker::SnapshotStored(std::uint64_t snapshot,
                                   std::uint32_t server,
                                   ShardId shard,
                                   std::span<const float> values) {
  Snapshot& asked = snapshots_[snapshot];
  asked.lost_on.erase({server, setup_.layout.shards()[shard].bucket});
  const std::vector<controller::CheckpointBucket>& buckets = asked.checkpoint.buckets;
  if (!buckets.empty() && buckets[setup_.layout.shards()[shard].bucket].slot == server) {
    const Present found = DecodeServed(shard, values);
    CheckHeld(snapshot, shard, found);
    CheckNothingBeyond(snapshot, shard, found);
  }
}

void UpdateChecker::SnapshotsLost(std::uint32_t server) {
  for (auto& [number, snapshot] : snapshots_) {
    for (BucketId bucket = 0; bucket < setup_.job.buckets; ++bucket) {
      snapshot.lost_on.insert({server, bucket});
    }
  }
}

void UpdateChecker::CheckCheckpoint(std::uint64_t job_uid,
                                    const controller::Checkpoint& checkpoint) {
  if (checkpoint == checkpoint_ || checkpoint.buckets.empty()) {
    return;
  }
  const bool goes_back = checkpoint.snapshot < checkpoint_.snapshot;
  checkpoint_ = checkpoint;
  if (goes_back) {
    return;  // what servers begin with is compared (LoadedBack)
  }
  if (!checkpoint.cuts.empty()) {
    CheckCuts(checkpoint);
  }
  snapshots_[checkpoint.snapshot].checkpoint = checkpoint;
  CheckStored(job_uid, checkpoint);
}

void UpdateChecker::CheckStored(std::uint64_t job_uid, const controller::Checkpoint& checkpoint) {
  std::set<std::uint32_t> servers;
  for (const controller::CheckpointBucket& bucket : checkpoint.buckets) {
    servers.insert(bucket.slot);
  }
  for (const std::uint32_t server : servers) {
    CheckRestored(job_uid, checkpoint, server);
  }
}

// What this server has to give to it.
void UpdateChecker::CheckRestored(std::uint64_t job_uid,
                                  const controller::Checkpoint& checkpoint,
                                  std::uint32_t server) {
  std::vector<BucketId> buckets;
  for (BucketId bucket = 0; bucket < checkpoint.buckets.size(); ++bucket) {
    const bool lost = snapshots_[checkpoint.snapshot].lost_on.contains({server, bucket});
    if (checkpoint.buckets[bucket].slot == server && !lost) {
      buckets.push_back(bucket);
    }
  }
  const auto restored = RestoreFrom(job_uid, server, buckets, checkpoint.snapshot);
  if (!restored.ok()) {
    return Report("checkpoint " + std::to_string(checkpoint.snapshot) +
                  " cannot be restored from parameter-server-" + std::to_string(server) + ": " +
                  std::string(restored.status().message()));
  }
  for (const auto& [shard, values] : *restored) {
    CheckSnapshot(checkpoint.snapshot, shard, values);
  }
}

absl::StatusOr<RestoredShards> UpdateChecker::RestoreFrom(std::uint64_t job_uid,
                                                          std::uint32_t server,
                                                          std::span<const BucketId> buckets,
                                                          std::uint64_t snapshot) {
  absl::StatusOr<RestoredShards> restored;
  scheduler_.AsNobody(
      [&] { restored = Restore(setup_, scheduler_, job_uid, disks_[server], buckets, snapshot); });
  return restored;
}

// It names the last push of every worker at rest.
void UpdateChecker::CheckCuts(const controller::Checkpoint& checkpoint) {
  std::map<WorkerId, Sequence> cut = snapshots_[checkpoint.snapshot].cut;
  for (const controller::PushCut& each : checkpoint.cuts) {
    const WorkerId worker{.slot = each.worker, .incarnation = each.incarnation};
    if (const Sequence last = cut[worker]; last != each.sequence) {
      Report("checkpoint " + std::to_string(checkpoint.snapshot) + " names push " +
             std::to_string(each.sequence) + " of " + Name(worker) + ", which has pushed " +
             std::to_string(last));
    }
    cut.erase(worker);
  }
  if (!cut.empty()) {
    Report("checkpoint " + std::to_string(checkpoint.snapshot) + " names no push of " +
           Name(cut.begin()->first));
  }
}

void UpdateChecker::CheckNothingBeyond(std::uint64_t snapshot,
                                       ShardId shard,
                                       const Present& found) {
  const Snapshot& asked = snapshots_[snapshot];
  if (asked.writers_from.empty()) {
    return;  // of the first weights, made anew
  }
  for (std::uint32_t element = 0; element < trainings_.size(); ++element) {
    const Training& training = trainings_[element];
    const auto cut = asked.cut.find(training.worker);
    const Sequence last = cut == asked.cut.end() ? Sequence(0) : cut->second;
    if (found[element] != 0 && training.sequence > last &&
        training.worker.incarnation >= asked.writers_from[training.worker.slot]) {
      return Report(Name(shard, element) + " is of push " + std::to_string(training.sequence) +
                    " of " + Name(training.worker) + ", and snapshot " + std::to_string(snapshot) +
                    ", which holds it, ends with push " + std::to_string(last));
    }
  }
}

// A worker that was given up, and lives, trains and pushes on until a server is asked.
bool UpdateChecker::IsTrainedAfter(const Snapshot& snapshot, std::uint32_t element) const {
  if (element < snapshot.trained) {
    return false;
  }
  if (element >= trainings_.size() || snapshot.writers_from.empty()) {
    return true;
  }
  const WorkerId& worker = trainings_[element].worker;
  return worker.incarnation >= snapshot.writers_from[worker.slot];
}

void UpdateChecker::CheckHeld(std::uint64_t snapshot, ShardId shard, const Present& found) {
  const auto asked = shards_[shard].snapshots.find(snapshot);
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    if (found[element] != 0 && IsTrainedAfter(snapshots_[snapshot], element)) {
      return Report(Name(shard, element) + " was trained after snapshot " +
                    std::to_string(snapshot) + ", which holds it, was asked for");
    }
    if (asked == shards_[shard].snapshots.end() || found[element] < asked->second[element]) {
      return Report("shard " + std::to_string(shard) + " is not what snapshot " +
                    std::to_string(snapshot) + " must hold");
    }
  }
}

void UpdateChecker::CheckSnapshot(std::uint64_t snapshot,
                                  ShardId shard,
                                  std::span<const float> values) {
  const Present found = DecodeServed(shard, values);
  CheckHeld(snapshot, shard, found);
  CheckNothingBeyond(snapshot, shard, found);
}

void UpdateChecker::LoadedBack(ShardId shard, const Present& found, std::uint64_t snapshot) {
  CheckHeld(snapshot, shard, found);
  CheckNothingBeyond(snapshot, shard, found);
  ShardState& state = shards_[shard];
  state.live = found;
  state.applied = found;
  std::ranges::fill(state.lost, 0);
}

}  // namespace adamant::simulation
