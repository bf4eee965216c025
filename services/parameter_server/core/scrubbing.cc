#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/core/session.h"

// Reading what is stored again, so that damage is found while there is a good copy: the one in
// memory, which is written anew. The same for snapshots, but these only when somebody wants them.
// Entries of the log are not read: they go with the next flush.
namespace adamant::parameter_server {
namespace {

constexpr std::string_view kWrittenAnew = "what is damaged is written anew from memory";

}  // namespace

Clock::TimePoint ParameterServer::ScrubDueAt() const {
  return options_.mode == PersistenceMode::kNone ? Clock::TimePoint::max() : scrub_at_;
}

void ParameterServer::Scrub() {
  const std::size_t values = layout_.shards().size() + layout_.buckets();
  absl::Status read;
  bool found = false;
  for (std::size_t skipped = 0; skipped < values && !found; ++skipped) {
    const std::size_t value = scrub_next_;
    scrub_next_ = (value + 1) % values;
    const bool is_shard = value < layout_.shards().size();
    const auto shard = static_cast<ShardId>(value);
    const auto bucket = static_cast<BucketId>(is_shard ? layout_.shards()[shard].bucket
                                                       : value - layout_.shards().size());
    found = IsStored(bucket);
    if (found) {
      read = is_shard ? ScrubShard(shard) : ScrubRecords(bucket);
    }
  }
  const bool was_hurried = scrub_hurried_ > 0;
  if (!read.ok()) {
    OnDamage(std::string(read.message()), kWrittenAnew);
  }
  scrub_hurried_ -= was_hurried ? 1 : 0;
  const Clock::Duration share = options_.scrub.pass / static_cast<std::int64_t>(values);
  const bool hurries = found && scrub_hurried_ > 0;
  scrub_at_ =
      clock_.Now() + (hurries ? Clock::Duration::zero() : std::min(share, options_.scrub.pause));
}

// It seldom comes alone: all is read. A pass that is hurried already does not begin again, because
// what cannot be written stays damaged.
void ParameterServer::OnDamage(std::string_view problem, std::string_view then) {
  ++scrubbed_.damaged;
  damages_.Add(problem, then);
  if (scrub_hurried_ == 0) {
    scrub_hurried_ = layout_.shards().size() + layout_.buckets();
    scrub_at_ = clock_.Now();
  }
}

// Whether all of the bucket is on this disk, and in memory.
bool ParameterServer::IsStored(BucketId id) const {
  const MutexLock lock(mutex_);
  const Replica::Role role = buckets_[id]->replica().role();
  return role >= Replica::Role::kSecondary && role != Replica::Role::kLoading;
}

// These return what is wrong with what is stored.
absl::Status ParameterServer::ScrubShard(ShardId id) {
  const auto stored = store_.Get(LiveShardKey(id));
  const absl::Status read =
      stored.ok() ? DecodeShard(IdentityOf(id), *stored).status() : stored.status();
  if (read.ok()) {
    scrubbed_.bytes += stored->size();
  } else if (const LiveShardPtr shard = shard_table_.Get(id)) {
    shard->MarkDirty();
    dirty_.Hurry();
  }
  return read;
}

absl::Status ParameterServer::ScrubRecords(BucketId id) {
  const auto stored = LoadRecords(options_.job_uid, id, store_);
  if (stored.ok()) {
    for (const auto& [key, record] : *stored) {
      scrubbed_.bytes += record.value.size();
    }
    return absl::OkStatus();
  }
  const MutexLock lock(mutex_);
  const Bucket& bucket = *buckets_[id];
  for (const auto& [key, record] : bucket.content().records) {
    tasks_.puts.push_back({.bucket = id, .life = bucket.life(), .key = key, .done = nullptr});
  }
  driver_.WantStorage();
  return stored.status();
}

absl::StatusOr<ShardValue> ParameterServer::ReadSnapshot(const Writer* asking,
                                                         std::uint64_t snapshot,
                                                         const ShardIdentity& identity) {
  const BucketId bucket = layout_.shards()[identity.shard].bucket;
  absl::StatusOr<ShardValue> value = snapshots_.Read(snapshot, bucket, identity);
  if (value.ok() || absl::IsFailedPrecondition(value.status())) {
    return value;
  }
  const MutexLock lock(mutex_);
  UnreadableCopy& copy = tasks_.unreadable[{snapshot, bucket}];
  copy.why = value.status();
  copy.is_needed = copy.is_needed || asking != nullptr;
  driver_.WantStorage();
  if (asking == nullptr) {
    return value;
  }
  return ShardValue{.shard = identity.shard, .outcome = FetchOutcome::kNoSuchSnapshot};
}

// While a snapshot is needed nothing is pushed: memory has it.
absl::Status ParameterServer::RepairSnapshot(std::uint64_t snapshot,
                                             BucketId id,
                                             const UnreadableCopy& copy) {
  Bucket::Content content;
  {
    const MutexLock lock(mutex_);
    if (!buckets_[id]->replica().CanRead(clock_.Now())) {
      return absl::OkStatus();  // whoever is primary next is asked for it
    }
    content = buckets_[id]->content();
  }
  ADAMANT_ASSIGN_OR_RETURN(const auto about, snapshots_.Find(snapshot, id));
  if (!about.has_value() || about->generation != content.generation) {
    return absl::OkStatus();  // needed no more, or taken anew
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const bool repaired,
      snapshots_.Repair(snapshot, id, {.shards = content.shards, .records = content.records}));
  const std::string lost = "bucket " + std::to_string(id) + " of checkpoint " +
                           std::to_string(snapshot) +
                           " cannot be read, and memory has newer values";
  OnDamage(std::string(copy.why.message()), repaired ? kWrittenAnew : std::string_view(lost));
  return repaired || !copy.is_needed
             ? absl::OkStatus()
             : absl::DataLossError(std::string(copy.why.message()) + "; " + lost);
}

}  // namespace adamant::parameter_server
