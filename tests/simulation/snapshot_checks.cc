#include <string>

#include "tests/simulation/update_checker.h"

// Snapshots: what is asked for, what servers store, what is made a checkpoint, what is read.
namespace adamant::simulation {

void UpdateChecker::SnapshotAsked(std::uint64_t snapshot,
                                  std::span<const std::uint64_t> writers_from) {
  CheckRest(snapshot, writers_from);
  for (ShardState& state : shards_) {
    state.snapshots.try_emplace(snapshot, state.live);
  }
  const auto [asked, first] = snapshots_.try_emplace(snapshot);
  if (!first) {
    return;
  }
  asked->second.trained = trainings_.size();
  asked->second.writers_from.assign(writers_from.begin(), writers_from.end());
  for (const auto& [key, push] : pushes_) {
    const auto& [worker, sequence] = key;
    if (worker.incarnation >= writers_from[worker.slot]) {
      asked->second.cut[worker] = sequence;  // they come in their order
    }
  }
}

// A worker at rest has been told that each of its pushes is in every shard. One that keeps updates
// until they are on disk has sent again what was lost since.
void UpdateChecker::CheckRest(std::uint64_t snapshot, std::span<const std::uint64_t> writers_from) {
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
  snapshots_[snapshot].stored[{server, shard}] = DecodeServed(shard, values);
}

void UpdateChecker::CheckCheckpoint(const controller::Checkpoint& checkpoint) {
  if (checkpoint == checkpoint_ || checkpoint.buckets.empty()) {
    return;
  }
  checkpoint_ = checkpoint;
  if (!checkpoint.cuts.empty()) {
    CheckCuts(checkpoint);
  }
  const Snapshot& snapshot = snapshots_[checkpoint.snapshot];
  for (const Shard& shard : setup_.layout.shards()) {
    const std::uint32_t server = checkpoint.buckets[shard.bucket].slot;
    const auto stored = snapshot.stored.find({server, shard.id});
    if (stored == snapshot.stored.end()) {
      return Report("checkpoint " + std::to_string(checkpoint.snapshot) + " lacks shard " +
                    std::to_string(shard.id) + ", which parameter-server-" +
                    std::to_string(server) + " has not stored");
    }
    CheckHeld(checkpoint.snapshot, shard.id, stored->second);
    CheckNothingBeyond(checkpoint.snapshot, shard.id, stored->second);
  }
}

// It names the last push of every worker at rest.
void UpdateChecker::CheckCuts(const controller::Checkpoint& checkpoint) {
  std::map<WorkerId, worker::Sequence> cut = snapshots_[checkpoint.snapshot].cut;
  for (const controller::PushCut& each : checkpoint.cuts) {
    const WorkerId worker{.slot = each.worker, .incarnation = each.incarnation};
    if (const worker::Sequence last = cut[worker]; last != each.sequence) {
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
  for (std::uint32_t element = 0; element < trainings_.size(); ++element) {
    const Training& training = trainings_[element];
    const auto cut = asked.cut.find(training.worker);
    const worker::Sequence last = cut == asked.cut.end() ? 0 : cut->second;
    if (found[element] != 0 && training.sequence > last &&
        training.worker.incarnation >= asked.writers_from[training.worker.slot]) {
      return Report(Name(shard, element) + " is of push " + std::to_string(training.sequence) +
                    " of " + Name(training.worker) + ", and checkpoint " +
                    std::to_string(snapshot) + ", which holds it, ends with push " +
                    std::to_string(last));
    }
  }
}

void UpdateChecker::CheckHeld(std::uint64_t snapshot, ShardId shard, const Present& found) {
  const auto asked = shards_[shard].snapshots.find(snapshot);
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    if (found[element] != 0 && element >= snapshots_[snapshot].trained) {
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
  CheckHeld(snapshot, shard, DecodeServed(shard, values));
}

}  // namespace adamant::simulation
