#include "services/parameter_server/core/serving/record_handler.h"

#include <string>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

BucketId RecordHandler::BucketOf(std::string_view key) const {
  return BucketOfRecord(key, table_.catalog().layout().buckets());
}

RecordAnswer RecordHandler::Get(std::string_view key) const {
  const BucketTable::View view(table_);
  const Bucket& bucket = view.bucket(BucketOf(key));
  RecordAnswer answer{.access = bucket.AccessAt(clock_.Now())};
  if (answer.access == Access::kReady) {
    ADAMANT_FAILPOINT("record/read");
    const auto record = bucket.content().records.find(key);
    answer.record = record == bucket.content().records.end() ? Record{} : record->second;
  }
  return answer;
}

absl::Status RecordHandler::Put(std::string_view key,
                                std::uint64_t expected,
                                std::string_view value,
                                RecordDone done) {
  if (key.empty() || key.size() > kMaxRecordKeyBytes || value.size() > kMaxRecordBytes) {
    return absl::InvalidArgumentError(
        "a record has a key of 1 to 256 bytes and at most 1 MiB; this one has " +
        std::to_string(key.size()) + " and " + std::to_string(value.size()) + " bytes");
  }
  BucketTable::Session session(table_);
  Bucket& bucket = session.bucket(BucketOf(key));
  Replica& replica = bucket.replica();
  RecordAnswer answer{.access = bucket.AccessAt(clock_.Now())};
  if (answer.access == Access::kReady && !replica.CanAppend()) {
    answer.access = Access::kNotReady;
  }
  if (answer.access == Access::kReady) {
    answer.record.version = bucket.VersionOf(key);
  }
  if (answer.record.version != expected && bucket.IsOpen(key)) {
    answer.access = Access::kNotReady;  // perhaps it is this very put, said again
  }
  if (answer.access != Access::kReady || answer.record.version != expected) {
    session.Answer(std::move(done), answer);
    return absl::OkStatus();
  }
  Entry entry;
  entry.bytes = value.size();
  entry.puts.push_back(
      {.key = std::string(key), .version = expected + 1, .value = std::string(value)});
  bucket.SetVersion(key, expected + 1);
  bucket.waiting[replica.log().prepared() + 1].puts.push_back(std::move(done));
  replica.Append(std::move(entry), clock_.Now());
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
