#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/serving/session.h"

// Reading what is stored again, so that damage is found while there is a good copy: the one in
// memory, which is written anew. Of snapshots memory often has newer values: then it is told, so
// that who needs them hears of it before. Entries of the log are not read: they go with the next
// flush.
namespace adamant::parameter_server {
namespace {

constexpr std::string_view kWrittenAnew = "what is damaged is written anew from memory";

}  // namespace

Clock::TimePoint ParameterServer::ScrubDueAt() const { return scrub_at_; }

// What is live first: shards by id, then the records of each bucket.
void ParameterServer::BeginScrub() {
  scrub_next_ = 0;
  scrub_pass_.clear();
  if (options_.mode != PersistenceMode::kNone) {
    for (const Shard& shard : layout().shards()) {
      scrub_pass_.push_back({.bucket = static_cast<BucketId>(shard.bucket), .shard = shard.id});
    }
    for (BucketId bucket = 0; bucket < layout().buckets(); ++bucket) {
      scrub_pass_.push_back({.bucket = bucket, .shard = std::nullopt});
    }
  }
  const auto copies = snapshots_.All();
  if (!copies.ok()) {
    OnDamage(std::string(copies.status().message()), "checkpoints are not read again");
    return;
  }
  for (const auto& [snapshot, bucket] : *copies) {
    if (bucket >= layout().buckets() || lost_copies_.contains({snapshot, bucket})) {
      continue;
    }
    for (const ShardId shard : catalog_.ShardsOf(bucket)) {
      scrub_pass_.push_back({.snapshot = snapshot, .bucket = bucket, .shard = shard});
    }
    scrub_pass_.push_back({.snapshot = snapshot, .bucket = bucket, .shard = std::nullopt});
  }
}

void ParameterServer::Scrub() {
  if (scrub_next_ >= scrub_pass_.size()) {
    BeginScrub();
  }
  absl::Status read;
  bool found = false;
  while (!found && scrub_next_ < scrub_pass_.size()) {
    const ScrubbedValue& value = scrub_pass_[scrub_next_++];
    found = value.snapshot != 0 || IsStored(value.bucket);
    if (value.snapshot != 0) {
      ScrubCopy(value);
    } else if (found) {
      read = value.shard ? ScrubShard(*value.shard) : ScrubRecords(value.bucket);
    }
  }
  const bool was_hurried = scrub_hurried_ > 0;
  if (!read.ok()) {
    OnDamage(std::string(read.message()), kWrittenAnew);
  }
  scrub_hurried_ -= was_hurried ? 1 : 0;
  const auto values = std::max<std::size_t>(scrub_pass_.size(), 1);
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
    scrub_hurried_ = scrub_pass_.size();
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
      stored.ok() ? DecodeShard(catalog_.IdentityOf(id), *stored).status() : stored.status();
  if (read.ok()) {
    scrubbed_.bytes += stored->size();
  } else if (absl::IsResourceExhausted(read)) {
    return absl::OkStatus();  // too many open files
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
  if (absl::IsResourceExhausted(stored.status())) {
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

// What cannot be read is dealt with as when somebody asks for it.
void ParameterServer::ScrubCopy(const ScrubbedValue& value) {
  const auto about = snapshots_.Find(value.snapshot, value.bucket);
  if (about.ok() && !about->has_value()) {
    return;  // dropped since the pass began
  }
  absl::Status read = about.status();
  if (read.ok() && value.shard) {
    const ShardIdentity identity = catalog_.IdentityOf(*value.shard);
    read = snapshots_.LoadShard(value.snapshot, value.bucket, identity).status();
    scrubbed_.bytes += read.ok() ? (identity.values + identity.state) * sizeof(float) : 0;
  } else if (read.ok()) {
    const auto records = snapshots_.LoadRecords(value.snapshot, value.bucket);
    read = records.status();
    for (const auto& [key, record] : records.ok() ? *records : RecordMap{}) {
      scrubbed_.bytes += record.value.size();
    }
  }
  if (!read.ok() && !absl::IsResourceExhausted(read)) {
    const MutexLock lock(mutex_);
    tasks_.unreadable[{value.snapshot, value.bucket}].why = std::move(read);
    driver_.WantStorage();
  }
}

absl::StatusOr<ShardValue> ParameterServer::ReadSnapshot(const Writer* asking,
                                                         std::uint64_t snapshot,
                                                         const ShardIdentity& identity) {
  const BucketId bucket = catalog_.BucketOf(identity.shard);
  absl::StatusOr<ShardValue> value = snapshots_.Read(snapshot, bucket, identity);
  if (value.ok() || absl::IsFailedPrecondition(value.status())) {
    return value;
  }
  if (!absl::IsResourceExhausted(value.status())) {  // with too many open files nothing is wrong
    const MutexLock lock(mutex_);
    UnreadableCopy& copy = tasks_.unreadable[{snapshot, bucket}];
    copy.why = value.status();
    copy.is_needed = copy.is_needed || asking != nullptr;
    driver_.WantStorage();
  }
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
  bool is_here = false;
  {
    const MutexLock lock(mutex_);
    is_here = buckets_[id]->replica().CanRead(clock_.Now());
    content = is_here ? buckets_[id]->content() : Bucket::Content{};
  }
  if (!is_here && copy.is_needed) {
    return absl::OkStatus();  // whoever is primary next is asked for it
  }
  ADAMANT_ASSIGN_OR_RETURN(const auto about, snapshots_.Find(snapshot, id));
  is_here = is_here && about.has_value() && about->generation == content.generation;
  if (!about.has_value() || (!is_here && copy.is_needed)) {
    return absl::OkStatus();  // needed no more, or taken anew
  }
  bool repaired = false;
  if (is_here) {
    ADAMANT_ASSIGN_OR_RETURN(
        repaired,
        snapshots_.Repair(snapshot, id, {.shards = content.shards, .records = content.records}));
  }
  const std::string lost = "bucket " + std::to_string(id) + " of checkpoint " +
                           std::to_string(snapshot) +
                           " cannot be read, and memory has other values";
  OnDamage(std::string(copy.why.message()), repaired ? kWrittenAnew : std::string_view(lost));
  if (!repaired) {
    lost_copies_.emplace(snapshot, id);
  }
  return repaired || !copy.is_needed
             ? absl::OkStatus()
             : absl::DataLossError(std::string(copy.why.message()) + "; " + lost);
}

}  // namespace adamant::parameter_server
