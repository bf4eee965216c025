#include "services/parameter_server/core/serving/shard_reader.h"

#include <string>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant::parameter_server {

ShardReader::ShardReader(BucketTable& table,
                         const Snapshots& snapshots,
                         StorageQueue& queue,
                         DirtyShards& dirty,
                         const Clock& clock)
    : table_(table), snapshots_(snapshots), queue_(queue), dirty_(dirty), clock_(clock) {}

absl::Status ShardReader::CheckShard(ShardId shard) const {
  const std::size_t shards = table_.catalog().layout().shards().size();
  return shard < shards
             ? absl::OkStatus()
             : absl::InvalidArgumentError("shard " + std::to_string(shard) +
                                          " is asked for, the model has " + std::to_string(shards));
}

absl::StatusOr<std::vector<ShardValue>> ShardReader::Fetch(const WorkerId* asking,
                                                           std::span<const ShardId> shards,
                                                           std::uint64_t snapshot) {
  const ShardCatalog& catalog = table_.catalog();
  std::vector<ShardValue> values;
  for (const ShardId id : shards) {
    ADAMANT_RETURN_IF_ERROR(CheckShard(id));
    Access access = Access::kNotReady;
    ConfigurationVersion configuration_version = 0;
    LiveShardPtr shard;
    {
      const BucketTable::View view(table_);
      const Bucket& bucket = view.bucket(catalog.BucketOf(id));
      access = bucket.AccessAt(clock_.Now());
      configuration_version = bucket.replica().configuration().version;
      shard = access == Access::kReady ? bucket.content().shards[catalog.PositionOf(id)] : nullptr;
    }
    ShardValue value{{.shard = id,
                      .outcome = access == Access::kNotPrimary ? FetchOutcome::kNotPrimary
                                                               : FetchOutcome::kNotReady}};
    if (access == Access::kReady && snapshot == 0) {
      ADAMANT_FAILPOINT("server/read");
      value = shard->Read(asking);
    } else if (access == Access::kReady) {
      ADAMANT_ASSIGN_OR_RETURN(value, ReadSnapshot(asking, snapshot, shard->identity()));
    }
    value.configuration_version = configuration_version;
    values.push_back(std::move(value));
  }
  return values;
}

absl::StatusOr<std::vector<ShardValue>> ShardReader::FetchCopies(
    std::span<const ShardId> shards,
    std::uint64_t snapshot,
    std::span<const std::uint64_t> copies) {
  if (snapshot == 0 || copies.size() != shards.size()) {
    return absl::InvalidArgumentError("a fetch names one copy of a snapshot for each shard");
  }
  std::vector<ShardValue> values;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    ADAMANT_RETURN_IF_ERROR(CheckShard(shards[i]));
    ADAMANT_ASSIGN_OR_RETURN(values.emplace_back(), ReadCopy(shards[i], snapshot, copies[i]));
  }
  return values;
}

absl::StatusOr<ShardValue> ShardReader::ReadCopy(ShardId shard,
                                                 std::uint64_t snapshot,
                                                 std::uint64_t checksum) {
  const BucketId bucket = table_.catalog().BucketOf(shard);
  const ShardValue none{{.shard = shard, .outcome = FetchOutcome::kNoSuchSnapshot}};
  ADAMANT_ASSIGN_OR_RETURN(const auto before, snapshots_.Find(snapshot, bucket));
  if (!before.has_value() || before->checksum != checksum) {
    return none;
  }
  ADAMANT_ASSIGN_OR_RETURN(const ShardValue value,
                           ReadSnapshot(nullptr, snapshot, table_.catalog().IdentityOf(shard)));
  // One of a later generation may have replaced it meanwhile.
  ADAMANT_ASSIGN_OR_RETURN(const auto after, snapshots_.Find(snapshot, bucket));
  return after.has_value() && after->checksum == checksum ? value : none;
}

absl::StatusOr<ShardValue> ShardReader::ReadSnapshot(const WorkerId* asking,
                                                     std::uint64_t snapshot,
                                                     const ShardIdentity& identity) {
  const BucketId bucket = table_.catalog().BucketOf(identity.shard);
  absl::StatusOr<ShardValue> value = snapshots_.Read(snapshot, bucket, identity);
  if (value.ok() || absl::IsFailedPrecondition(value.status())) {
    return value;
  }
  if (!absl::IsResourceExhausted(value.status())) {  // with too many open files nothing is wrong
    queue_.Repair(snapshot, bucket, {.why = value.status(), .is_needed = asking != nullptr});
  }
  if (asking == nullptr) {
    return value;
  }
  return ShardValue{{.shard = identity.shard, .outcome = FetchOutcome::kNoSuchSnapshot}};
}

std::vector<PersistedShard> ShardReader::RequestFlush(const WorkerId& writer,
                                                      std::span<const ShardId> shards) {
  const ShardCatalog& catalog = table_.catalog();
  dirty_.Hurry();
  std::vector<PersistedShard> persisted;
  for (const ShardId id : shards) {
    LiveShardPtr shard;
    if (id < catalog.layout().shards().size()) {
      // Defers nothing.
      BucketTable::Session session(table_, BucketTable::Session::Applying::kHere);
      Bucket& bucket = session.bucket(catalog.BucketOf(id));
      if (!catalog.durable_at_once()) {
        bucket.replica().RequestFlush(clock_.Now());
      }
      shard = bucket.AccessAt(clock_.Now()) == Access::kReady
                  ? bucket.content().shards[catalog.PositionOf(id)]
                  : nullptr;
    }
    persisted.push_back(
        {.shard = id, .sequence = shard == nullptr ? Sequence(0) : shard->PersistedOf(writer)});
  }
  return persisted;
}

}  // namespace adamant::parameter_server
