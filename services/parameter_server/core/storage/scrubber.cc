#include "services/parameter_server/core/storage/scrubber.h"

#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {
namespace {

constexpr std::string_view kWrittenAnew = "what is damaged is written anew from memory";

}  // namespace

Scrubber::Scrubber(ScrubSchedule schedule,
                   const BucketTable& table,
                   const BucketStore& store,
                   Snapshots& snapshots,
                   StorageQueue& queue,
                   DirtyShards& dirty)
    : schedule_(std::move(schedule)),
      table_(table),
      store_(store),
      snapshots_(snapshots),
      queue_(queue),
      dirty_(dirty) {}

// What is live first: shards by id, then the records of each bucket.
void Scrubber::BeginPass() {
  const ShardCatalog& catalog = store_.catalog();
  const std::uint32_t buckets = catalog.layout().buckets();
  std::vector<ScrubbedValue> values;
  if (store_.mode() != PersistenceMode::kNone) {
    for (const Shard& shard : catalog.layout().shards()) {
      values.push_back({.bucket = static_cast<BucketId>(shard.bucket), .shard = shard.id});
    }
    for (BucketId bucket = 0; bucket < buckets; ++bucket) {
      values.push_back({.bucket = bucket, .shard = std::nullopt});
    }
  }
  const auto copies = snapshots_.All();
  if (!copies.ok()) {
    schedule_.Begin(std::move(values));
    NoteDamage(std::string(copies.status().message()), "checkpoints are not read again");
    schedule_.Hurry();
    return;
  }
  for (const auto& [snapshot, bucket] : *copies) {
    if (bucket >= buckets || lost_.contains({snapshot, bucket})) {
      continue;
    }
    for (const ShardId shard : catalog.ShardsOf(bucket)) {
      values.push_back({.snapshot = snapshot, .bucket = bucket, .shard = shard});
    }
    values.push_back({.snapshot = snapshot, .bucket = bucket, .shard = std::nullopt});
  }
  schedule_.Begin(std::move(values));
}

void Scrubber::Scrub() {
  if (schedule_.IsOver()) {
    BeginPass();
  }
  absl::Status read;
  bool found = false;
  while (!found && !schedule_.IsOver()) {
    const ScrubbedValue& value = *schedule_.Next();
    found = value.snapshot != 0 || IsStored(value.bucket);
    if (value.snapshot != 0) {
      ScrubCopy(value);
    } else if (found) {
      read = value.shard ? ScrubShard(*value.shard) : ScrubRecords(value.bucket);
    }
  }
  if (!read.ok()) {
    NoteDamage(std::string(read.message()), kWrittenAnew);
  }
  schedule_.Finish(found, !read.ok());
}

void Scrubber::NoteDamage(std::string_view problem, std::string_view then) {
  ++totals_.damaged;
  damages_.Add(problem, then);
}

// Whether all of the bucket is on this disk, and in memory.
bool Scrubber::IsStored(BucketId id) const {
  const BucketTable::View view(table_);
  const Replica::Role role = view.bucket(id).replica().role();
  return role >= Replica::Role::kSecondary && role != Replica::Role::kLoading;
}

// These return what is wrong with what is stored.
absl::Status Scrubber::ScrubShard(ShardId id) {
  const auto read = store_.CheckShard(id);
  if (read.ok()) {
    totals_.bytes += *read;
  } else if (absl::IsResourceExhausted(read.status())) {
    return absl::OkStatus();  // too many open files
  } else if (const LiveShardPtr shard = table_.shards().Get(id)) {
    shard->MarkDirty();
    dirty_.Hurry();
  }
  return read.status();
}

absl::Status Scrubber::ScrubRecords(BucketId id) {
  const auto read = store_.CheckRecords(id);
  if (read.ok()) {
    totals_.bytes += *read;
    return absl::OkStatus();
  }
  if (absl::IsResourceExhausted(read.status())) {
    return absl::OkStatus();
  }
  const BucketTable::View view(table_);
  const Bucket& bucket = view.bucket(id);
  std::vector<PutTask> puts;
  for (const auto& [key, record] : bucket.content().records) {
    puts.push_back({.bucket = id, .life = bucket.life(), .key = key, .done = nullptr});
  }
  queue_.Put(std::move(puts));
  return read.status();
}

// What cannot be read is dealt with as when somebody asks for it.
void Scrubber::ScrubCopy(const ScrubbedValue& value) {
  const auto about = snapshots_.Find(value.snapshot, value.bucket);
  if (about.ok() && !about->has_value()) {
    return;  // dropped since the pass began
  }
  absl::Status read = about.status();
  if (read.ok() && value.shard) {
    const ShardIdentity identity = store_.catalog().IdentityOf(*value.shard);
    read = snapshots_.LoadShard(value.snapshot, value.bucket, identity).status();
    totals_.bytes += read.ok() ? (identity.values + identity.state) * sizeof(float) : 0;
  } else if (read.ok()) {
    const auto records = snapshots_.LoadRecords(value.snapshot, value.bucket);
    read = records.status();
    for (const auto& [key, record] : records.ok() ? *records : RecordMap{}) {
      totals_.bytes += record.value.size();
    }
  }
  if (!read.ok() && !absl::IsResourceExhausted(read)) {
    queue_.Repair(value.snapshot, value.bucket, {.why = std::move(read)});
  }
}

// While a snapshot is needed nothing is pushed: memory has it.
absl::Status Scrubber::Repair(std::uint64_t snapshot,
                              BucketId id,
                              const UnreadableCopy& copy,
                              const std::optional<Bucket::Content>& content) {
  if (!content.has_value() && copy.is_needed) {
    return absl::OkStatus();  // whoever is primary next is asked for it
  }
  ADAMANT_ASSIGN_OR_RETURN(const auto about, snapshots_.Find(snapshot, id));
  const bool is_here =
      content.has_value() && about.has_value() && about->generation == content->generation;
  if (!about.has_value() || (!is_here && copy.is_needed)) {
    return absl::OkStatus();  // needed no more, or taken anew
  }
  bool repaired = false;
  if (is_here) {
    ADAMANT_ASSIGN_OR_RETURN(
        repaired,
        snapshots_.Repair(snapshot, id, {.shards = content->shards, .records = content->records}));
  }
  const std::string lost = "bucket " + std::to_string(id) + " of checkpoint " +
                           std::to_string(snapshot) +
                           " cannot be read, and memory has other values";
  NoteDamage(std::string(copy.why.message()), repaired ? kWrittenAnew : std::string_view(lost));
  schedule_.Hurry();
  if (!repaired) {
    lost_.emplace(snapshot, id);
  }
  return repaired || !copy.is_needed
             ? absl::OkStatus()
             : absl::DataLossError(std::string(copy.why.message()) + "; " + lost);
}

}  // namespace adamant::parameter_server
