#include "operator/core/buckets/bucket_restorer.h"

#include <algorithm>
#include <string>

#include "operator/core/buckets/remains.h"
#include "operator/core/diagnosis/recovery.h"
#include "operator/core/state/sent_again.h"

namespace adamant::controller {

BucketRestorer::BucketRestorer(const JobSettings& settings,
                               JobState& state,
                               Outbox& outbox,
                               Configurations& configurations,
                               const DeadServers& dead_servers,
                               const ParameterServers& servers,
                               CheckpointReturn& checkpoint_return)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      configurations_(configurations),
      dead_servers_(dead_servers),
      servers_(servers),
      checkpoint_return_(checkpoint_return),
      restores_(settings.logged),
      restored_(settings, state, outbox) {}

void BucketRestorer::Begin(bool in_order) {
  restored_.Begin(in_order);
  ForgetRetained();  // who was lost before is not known
}

void BucketRestorer::ForgetRetained() {
  CountWorkerGone(state_);
  not_retained_.resize(state_.buckets.size());
  for (BucketId bucket = 0; bucket < not_retained_.size(); ++bucket) {
    not_retained_[bucket] = KnownUpdates(bucket);
  }
}

// A checkpoint may know more than the last heartbeats.
std::uint64_t BucketRestorer::KnownUpdates(BucketId bucket) const {
  const auto& kept = state_.checkpoint.buckets;
  return std::max(state_.histories[bucket].updates, kept.empty() ? 0 : kept[bucket].updates);
}

void BucketRestorer::OnStored(ServerId server, const StoredBuckets& stored) {
  if (const std::string old = WhyDiskIsOld(state_, server, stored.previous_incarnation);
      !old.empty()) {
    const SlotId from{Role::kParameterServer, server.slot};
    outbox_.Tell(Note::Kind::kAlarm, from, ToString(from) + ": " + old);
  }
  restores_.OnStored(server, stored);
}

bool BucketRestorer::OnRejected(ServerId server, const BucketState& state) {
  const Configuration& configuration = configurations_.At(state.bucket);
  if (configuration.primary != server || configuration.version != state.configuration_version ||
      configuration.replicas.size() != 1) {
    return false;
  }
  rejected_[state.bucket] = state.configuration_version;
  restores_.OnLost(state.bucket, configuration, TimePoint{});
  restores_.Reject(state.bucket, server, state.detail);
  return true;
}

void BucketRestorer::OnRestored(BucketId bucket, std::uint64_t updates, std::uint64_t lost) {
  const bool worker_ended = not_retained_[bucket] > updates;
  not_retained_[bucket] = std::min(not_retained_[bucket], updates);
  const SlotId from{Role::kParameterServer, configurations_.At(bucket).primary.slot};
  restored_.Add(bucket, from, lost);
  if (checkpoint_return_.may_go_back()) {
    CountLost(state_, lost);  // no worker lives that could send them again
  } else if (!checkpoint_return_.at_checkpoint() && (lost > 0 || !settings_.logged)) {
    CountRolledBack(state_, lost);
    state_.rolled_back.worker_ended |= worker_ended;
  }
  outbox_.StateChanged();
}

bool BucketRestorer::GoBack() {
  if (!checkpoint_return_.HasDisksRunning()) {
    return false;
  }
  checkpoint_return_.SetWentBack();
  ReturnToCheckpoint();
  return true;
}

void BucketRestorer::TellRestored() {
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (configurations_.ServiceOf(bucket) == Configurations::Service::kRestoring) {
      return;
    }
  }
  restored_.TellTogether(checkpoint_return_.at_checkpoint());
}

void BucketRestorer::OnHinted() {
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (const auto& learner = configurations_.At(bucket).learner) {
      restores_.Touch(bucket, *learner);
    }
  }
}

// Nobody of the configuration can serve it. The end of one whose disk was left with its node is
// never proved; it acknowledges nothing without the others, of which one, at least, is dead.
bool BucketRestorer::IsLost(BucketId bucket) const {
  const Configuration& configuration = configurations_.At(bucket);
  const auto rejected = rejected_.find(bucket);
  const auto is_dead = [&](ServerId replica) { return dead_servers_.Has(replica); };
  const bool all_gone = std::ranges::all_of(configuration.replicas, [&](ServerId replica) {
    return is_dead(replica) || restores_.HasLostDisk(replica);
  });
  return (all_gone && std::ranges::any_of(configuration.replicas, is_dead)) ||
         (rejected != rejected_.end() && rejected->second == configuration.version);
}

absl::Status BucketRestorer::BringBack(const std::vector<Balancer::Server>& servers,
                                       TimePoint now) {
  Load load(configurations_.all(), settings_.parameter_servers);
  Restores::Sources sources;
  bool all_known = true;
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (!IsLost(bucket)) {
      continue;
    }
    const Configuration& configuration = configurations_.At(bucket);
    if (!configuration.created) {
      if (const auto server = Balancer::Replacement(servers, load)) {
        configurations_.Reassign(bucket, *server);
        ++load.primaries[server->slot];
      }
      continue;
    }
    configurations_.SetRestoring(bucket);
    restores_.OnLost(bucket, configuration, now);
    const absl::StatusOr<std::optional<Restores::Source>> source =
        SourceOf(bucket, servers, load, now);
    if (!source.ok()) {
      return OnNobodyHas(source.status(), settings_.only_checkpoints);
    }
    all_known = all_known && source->has_value();
    if (*source) {
      ++load.primaries[(*source)->server.slot];
      sources.emplace(bucket, **source);
    }
  }
  if (absl::Status better = CheckLosses(sources); !better.ok()) {
    return better;
  }
  return Restore(sources, all_known);
}

// Who is to serve the lost bucket. A job that may still go back to its checkpoint as a whole
// decides so where it knows all sources; a log lacks nothing that was acknowledged.
absl::StatusOr<std::optional<Restores::Source>> BucketRestorer::SourceOf(
    BucketId bucket,
    const std::vector<Balancer::Server>& servers,
    const Load& load,
    TimePoint now) const {
  absl::StatusOr<std::optional<Restores::Source>> disk = restores_.Choose(bucket, load, now);
  const Checkpoint& checkpoint = state_.checkpoint;
  const bool unreadable = rejected_.contains(bucket) &&
                          configurations_.At(bucket).restored_snapshot == checkpoint.snapshot;
  const bool is_known = !disk.ok() || disk->has_value();
  if (checkpoint_return_.may_go_back() || settings_.only_checkpoints || unreadable || !is_known ||
      (disk.ok() && settings_.logged) ||
      !CheckpointHasMore(state_, bucket, disk.ok() ? *disk : std::nullopt)) {
    return disk;
  }
  const CheckpointBucket& kept = checkpoint.buckets[bucket];
  if (servers[kept.slot].running) {
    return std::optional(Restores::Source{.server = servers_.ServerIdOf(kept.slot),
                                          .updates = kept.updates,
                                          .generation = kept.generation,
                                          .snapshot = checkpoint.snapshot});
  }
  if (restores_.IsWaiting(bucket, now)) {
    return std::optional<Restores::Source>();
  }
  return disk;
}

// In a log is all that was acknowledged; before the job begins Restore weighs all buckets together.
absl::Status BucketRestorer::CheckLosses(const Restores::Sources& sources) const {
  if (checkpoint_return_.may_go_back() || settings_.logged || settings_.only_checkpoints ||
      state_.recovery.going_back || !checkpoint_return_.MayReadCheckpoint() ||
      state_.recovery.newest.checkpoint.snapshot != state_.checkpoint.snapshot) {
    return absl::OkStatus();
  }
  for (const auto& [bucket, source] : sources) {
    const std::uint64_t gone =
        settings_.workers_retain ? not_retained_[bucket] : KnownUpdates(bucket);
    if (source.updates < gone && HasNothingSinceCheckpoint(state_, bucket, source)) {
      const SlotId from{Role::kParameterServer, source.server.slot};
      return absl::AbortedError("all copies of bucket " + std::to_string(bucket) +
                                " are lost, the disk of " + ToString(from) +
                                " has no update of it since " + CheckpointName(state_) +
                                ", and no worker can send the rest again");
    }
  }
  return absl::OkStatus();
}

// While the job may still go back to its checkpoint, what is left of all buckets decides together.
absl::Status BucketRestorer::Restore(const Restores::Sources& sources, bool all_known) {
  if (sources.empty() || (checkpoint_return_.may_go_back() && !all_known)) {
    return absl::OkStatus();
  }
  if (checkpoint_return_.may_go_back() && !settings_.logged &&
      checkpoint_return_.HasDisksRunning() && checkpoint_return_.MayReadCheckpoint()) {
    if (const std::string why = WhyBackToCheckpoint(state_, sources); !why.empty()) {
      return OnNobodyHas(absl::DataLossError(why), true);
    }
  }
  for (const auto& [bucket, source] : sources) {
    configurations_.Restore(bucket, source.server, source.snapshot);
    restores_.Touch(bucket, source.server);
  }
  return absl::OkStatus();
}

// A bucket has no complete copy. Before the job begins, with no process of before alive, everything
// can go back to the checkpoint together: parameters, tables and ledger. Where a disk has nothing
// that it should have, the checkpoint may be gone with it.
absl::Status BucketRestorer::OnNobodyHas(const absl::Status& why, bool disks_have_checkpoint) {
  if (!checkpoint_return_.may_go_back()) {
    return why;
  }
  if (checkpoint_return_.HasDisksRunning()) {
    outbox_.Tell(Note::Kind::kRestored,
                 state_.epoch,
                 (settings_.only_checkpoints ? "nothing but checkpoints is stored"
                                             : std::string(why.message())) +
                     "; the job goes back to " + CheckpointName(state_) +
                     (disks_have_checkpoint || state_.checkpoint.buckets.empty()
                          ? ""
                          : ", if it is still on the disks") +
                     (EndedWithCheckpoint(state_) ? "" : ", and trains again what came after it"));
    ReturnToCheckpoint();
  }
  return absl::OkStatus();
}

void BucketRestorer::ReturnToCheckpoint() {
  rejected_.clear();
  checkpoint_return_.GoBack();
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    restores_.OnServed(bucket);  // what was lost before does not matter any more
    restores_.Touch(bucket, configurations_.At(bucket).primary);
  }
}

}  // namespace adamant::controller
