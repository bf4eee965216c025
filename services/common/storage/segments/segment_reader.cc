#include "services/common/storage/segments/segment_reader.h"

#include <rocksdb/file_system.h>

#include <optional>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "services/common/storage/segments/segment_records.h"

namespace adamant::storage {
namespace {

absl::Status OnlyRead() { return absl::FailedPreconditionError("the store is only read"); }

}  // namespace

SegmentReader::SegmentReader(std::unique_ptr<KvStore> records,
                             std::unique_ptr<SegmentFiles> segments,
                             Places places)
    : records_(std::move(records)), segments_(std::move(segments)), places_(std::move(places)) {}

absl::StatusOr<std::unique_ptr<SegmentReader>> SegmentReader::Open(
    const std::filesystem::path& folder) {
  ADAMANT_ASSIGN_OR_RETURN(auto records, RocksDbStore::OpenToRead(folder / "records"));
  ADAMANT_ASSIGN_OR_RETURN(
      auto segments,
      SegmentFiles::Open(folder / "segments", /*segment_bytes=*/0, rocksdb::FileSystem::Default()));
  Places places;
  bool readable = true;
  ADAMANT_RETURN_IF_ERROR(
      records->Scan(std::string(1, kPlace), [&](std::string_view key, std::string_view value) {
        const std::optional<Location> place = DecodePlace(value);
        readable = place.has_value();
        if (readable) {
          places.emplace(key.substr(1), *place);
        }
        return readable;
      }));
  if (!readable) {
    return absl::DataLossError(folder.string() +
                               ": the place of a large value has the wrong length");
  }
  return std::unique_ptr<SegmentReader>(
      new SegmentReader(std::move(records), std::move(segments), std::move(places)));
}

absl::StatusOr<std::string> SegmentReader::Get(std::string_view key) const {
  const auto place = places_.find(key);
  return place == places_.end() ? records_->Get(RecordKey(kValue, key))
                                : segments_->Read(place->second);
}

// The large values between the small ones, in the order of the keys.
absl::Status SegmentReader::Scan(
    std::string_view prefix,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) const {
  auto place = places_.lower_bound(prefix);
  absl::Status status;
  bool go_on = true;
  const auto show_before = [&](std::optional<std::string_view> end) {
    while (go_on && place != places_.end() && place->first.starts_with(prefix) &&
           (!end || place->first < *end)) {
      const absl::StatusOr<std::string> value = segments_->Read(place->second);
      status = value.status();
      go_on = value.ok() && visit(place->first, *value);
      ++place;
    }
    return go_on;
  };
  ADAMANT_RETURN_IF_ERROR(records_->Scan(RecordKey(kValue, prefix),
                                         [&](std::string_view record_key, std::string_view value) {
                                           const std::string_view key = record_key.substr(1);
                                           go_on = show_before(key) && visit(key, value);
                                           return go_on;
                                         }));
  show_before(std::nullopt);
  return status;
}

absl::Status SegmentReader::Write(const std::vector<Change>& /*changes*/) { return OnlyRead(); }

absl::Status SegmentReader::WriteLogged(const std::vector<Change>& /*changes*/) {
  return OnlyRead();
}

absl::Status SegmentReader::WriteLazily(const std::vector<Change>& /*changes*/) {
  return OnlyRead();
}

absl::Status SegmentReader::Flush() { return OnlyRead(); }

}  // namespace adamant::storage
