// Copies of buckets in the store of a parameter server: pieces are keys and values in turn. Values
// of records and shards get the checksums that they need.

#include "services/common/checkpoint/snapshot_store.h"

#include <cstring>
#include <span>

#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/storage/memory_store.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using checkpoint::ShardIdentity;

constexpr std::uint64_t kJob = 7;
constexpr ShardIdentity kIdentity{.job_uid = kJob, .shard = 3, .values = 2, .state = 0};

// Of a record (checkpoint/record.cc): its format version, its checksum, and what that covers.
constexpr std::size_t kChecksumAt = 8;
constexpr std::size_t kCoveredFrom = 16;

void CorrectChecksum(std::string_view key, std::string& value) {
  if (key.find("shard/") != std::string_view::npos) {
    checkpoint::SealShard(value);
  } else if (key.find("record/") != std::string_view::npos && value.size() >= kCoveredFrom) {
    const std::uint64_t checksum = Checksum(std::as_bytes(std::span(value)).subspan(kCoveredFrom));
    std::memcpy(value.data() + kChecksumAt, &checksum, sizeof(checksum));
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string copy = checkpoint::CopyPrefix(11, 1);
  const storage::Change record =
      checkpoint::StoreRecord(kJob, 1, "training/epoch/0", {.version = 2, .value = "ledger"});
  return {
      Join({checkpoint::MarkKey(11, 1),
            checkpoint::EncodeMark({.bucket = 1, .generation = 1, .updates = 5, .checksum = 12}),
            copy + checkpoint::LiveShardKey(kIdentity.shard),
            EncodeShard(kIdentity,
                        {.generation = 1, .lsn = 9, .version = 4, .values = {1, 2}, .state = {}}),
            copy + record.key,
            record.value})};
}

bool Try(std::string_view input) {
  storage::MemoryStore store;
  std::vector<std::string> pieces = Split(input);
  for (std::size_t i = 0; i + 1 < pieces.size(); i += 2) {
    CorrectChecksum(pieces[i], pieces[i + 1]);
    ADAMANT_CHECK(store.Write({{.key = pieces[i], .value = pieces[i + 1]}}).ok(),
                  "memory takes all");
  }
  const checkpoint::SnapshotStore snapshots(kJob, store);
  const auto copies = snapshots.All();
  if (!copies.ok()) {
    return false;
  }
  bool accepted = false;
  for (const auto& [snapshot, bucket] : *copies) {
    const auto about = snapshots.Find(snapshot, bucket);
    const auto shard = snapshots.ReadShard(snapshot, bucket, kIdentity);
    const auto records = snapshots.LoadRecords(snapshot, bucket);
    accepted = about.ok() && about->has_value() && shard.ok() && shard->has_value() &&
               records.ok() && !records->empty();
    ADAMANT_CHECK(!accepted || (*shard)->record.values.size() == kIdentity.values,
                  "a shard of another size");
  }
  return accepted;
}

}  // namespace adamant::fuzz
