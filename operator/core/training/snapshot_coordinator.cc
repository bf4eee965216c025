#include "operator/core/training/snapshot_coordinator.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::controller {

SnapshotCoordinator::SnapshotCoordinator(const JobSettings& settings,
                                         JobState& state,
                                         Outbox& outbox,
                                         ProcessTable& processes,
                                         const Configurations& configurations)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      processes_(processes),
      configurations_(configurations) {}

void SnapshotCoordinator::Take(std::uint64_t snapshot, std::vector<PushCut> cuts) {
  Drop();
  cuts_ = std::move(cuts);
  snapshot_ = snapshot;
  stored_.assign(configurations_.size(), std::nullopt);
  asked_.assign(configurations_.size(), 0);
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (configurations_.IsServed(bucket)) {
      asked_[bucket] = configurations_.At(bucket).version;
    }
  }
  for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
    Request(server);
  }
}

void SnapshotCoordinator::Need() {
  Drop();
  snapshot_ = state_.checkpoint.snapshot;
  complete_ = true;
  cuts_ = state_.checkpoint.cuts;
  stored_.assign(state_.checkpoint.buckets.begin(), state_.checkpoint.buckets.end());
  stored_.resize(configurations_.size());
  asked_.assign(configurations_.size(), 0);
  Follow();
}

void SnapshotCoordinator::Drop() {
  snapshot_ = 0;
  complete_ = false;
  retry_.reset();
  wait_ = kFirstWait;
  told_waiting_ = false;
  failures_ = 0;
  count_from_ = TimePoint::min();
}

bool SnapshotCoordinator::IsStored(BucketId bucket) const {
  return stored_[bucket] && stored_[bucket]->slot == configurations_.At(bucket).primary.slot;
}

// Its process is the primary of a bucket that is not stored.
bool SnapshotCoordinator::IsWanting(std::uint32_t server) const {
  const ServerId server_id{
      .slot = server, .incarnation = processes_.IncarnationOf({Role::kParameterServer, server})};
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (configurations_.At(bucket).primary == server_id && !IsStored(bucket)) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<bool> SnapshotCoordinator::OnTaken(std::uint32_t server,
                                                  const SnapshotTaken& message,
                                                  TimePoint now) {
  if (snapshot_ == 0 || message.snapshot != snapshot_) {
    return false;
  }
  if (!message.ok && IsWanting(server)) {
    ADAMANT_RETURN_IF_ERROR(OnFailed(server, message, now));
    return false;
  }
  for (const SnapshotBucket& stored : message.buckets) {
    if (stored.bucket < configurations_.size() &&
        configurations_.At(stored.bucket).primary.slot == server &&
        configurations_.At(stored.bucket).generation == stored.generation) {
      stored_[stored.bucket] = CheckpointBucket{.slot = server,
                                                .generation = stored.generation,
                                                .updates = stored.updates,
                                                .checksum = stored.checksum};
    }
  }
  return Complete();
}

absl::Status SnapshotCoordinator::OnFailed(std::uint32_t server,
                                           const SnapshotTaken& message,
                                           TimePoint now) {
  const SlotId id{Role::kParameterServer, server};
  const std::string problem = ToString(id) + " cannot store snapshot " + std::to_string(snapshot_) +
                              (message.disk_full ? ": " : " yet: ") + message.error;
  if (!message.disk_full) {  // a bucket is not served, as after any loss: there is time
    WaitForServing(id, problem, now);
    return absl::OkStatus();
  }
  retry_ = retry_.value_or(now + kRetry);
  // Servers that fail together, or one that restarts and fails again, count once in a while.
  if (now < count_from_) {
    return absl::OkStatus();
  }
  count_from_ = now + kRetry;
  if (++failures_ == 1) {
    outbox_.Tell(Note::Kind::kAlarm, id, problem);
  }
  return failures_ >= kTries ? absl::ResourceExhaustedError(problem) : absl::OkStatus();
}

// Asked again soon at first: buckets that begin are served a moment later, and nobody need know.
void SnapshotCoordinator::WaitForServing(const SlotId& server,
                                         const std::string& problem,
                                         TimePoint now) {
  if (retry_.has_value()) {
    return;
  }
  retry_ = now + wait_;
  wait_ = std::min(2 * wait_, kRetry);
  if (wait_ == kRetry && !std::exchange(told_waiting_, true)) {
    outbox_.Tell(Note::Kind::kCheckpoint, server, problem);
  }
}

bool SnapshotCoordinator::IsAllStored() const {
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (!IsStored(bucket)) {
      return false;
    }
  }
  return true;
}

// If every bucket is stored: makes it the state's checkpoint. Returns whether that is news.
bool SnapshotCoordinator::Complete() {
  if (!IsAllStored()) {
    return false;
  }
  retry_.reset();
  Checkpoint checkpoint{.snapshot = snapshot_, .epoch = state_.epoch, .buckets = {}, .cuts = cuts_};
  for (const auto& stored : stored_) {
    checkpoint.buckets.push_back(*stored);
  }
  state_.checkpoint = std::move(checkpoint);
  outbox_.StateChanged();
  if (state_.step != Step::kFirstWeights) {  // nobody wants those as a model
    outbox_.Add(WriteManifest{.checkpoint = state_.checkpoint, .keep = state_.evaluated_snapshot});
  }
  return !std::exchange(complete_, true);
}

bool SnapshotCoordinator::Follow() {
  if (snapshot_ == 0) {
    return false;
  }
  std::set<std::uint32_t> servers;
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    if (!IsStored(bucket) && configurations_.IsServed(bucket) &&
        asked_[bucket] != configuration.version) {
      asked_[bucket] = configuration.version;
      servers.insert(configuration.primary.slot);
    }
  }
  for (const std::uint32_t server : servers) {
    Request(server);
  }
  // A bucket's primary may be again a server that has stored it: nobody is asked, and none answers.
  if (!complete_ && IsAllStored()) {
    retry_ = TimePoint{};
  }
  return !servers.empty();
}

bool SnapshotCoordinator::IsReadable() const {
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (!IsStored(bucket) || !configurations_.IsServed(bucket)) {
      return false;
    }
  }
  return snapshot_ != 0;
}

void SnapshotCoordinator::Repeat(std::uint32_t server) {
  if (snapshot_ != 0 && IsWanting(server)) {
    Request(server);
  }
}

void SnapshotCoordinator::Request(std::uint32_t server) {
  TakeSnapshot request{.snapshot = snapshot_,
                       .keep_from = snapshot_,
                       .keep = {},
                       .writers_from = processes_.WritersFrom(),
                       .generations = configurations_.Generations()};
  std::vector<std::uint64_t> needed = settings_.held_checkpoints;
  for (const std::uint64_t kept : {state_.evaluated_snapshot,
                                   state_.checkpoint.snapshot,
                                   state_.recovery.healthy.checkpoint.snapshot,
                                   state_.recovery.healthy.evaluated,
                                   state_.recovery.older.checkpoint.snapshot,
                                   state_.recovery.first.snapshot,
                                   kept_}) {
    needed.push_back(kept);
  }
  for (const std::uint64_t kept : needed) {
    if (kept != 0 && kept < snapshot_ &&
        std::find(request.keep.begin(), request.keep.end(), kept) == request.keep.end()) {
      request.keep.push_back(kept);
    }
  }
  processes_.SendTo({Role::kParameterServer, server}, request);
}

bool SnapshotCoordinator::OnTimer(TimePoint now) {
  if (!retry_ || *retry_ > now) {
    return false;
  }
  retry_.reset();
  for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
    Repeat(server);
  }
  return snapshot_ != 0 && Complete();
}

}  // namespace adamant::controller
