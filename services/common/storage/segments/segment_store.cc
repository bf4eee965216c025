#include "services/common/storage/segments/segment_store.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/file_kinds.h"
#include "services/common/storage/rocksdb/rocksdb_status.h"
#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "services/common/storage/segments/segment_records.h"

namespace adamant::storage {
namespace {

absl::Status MakeFolders(rocksdb::FileSystem& files, const std::filesystem::path& folder) {
  for (const auto& path : {folder, folder / "segments", folder / "records"}) {
    ADAMANT_RETURN_IF_ERROR(CheckIsFolder(path));
    ADAMANT_RETURN_IF_ERROR(
        ReadStatus(files.CreateDirIfMissing(path.string(), rocksdb::IOOptions(), nullptr), path));
  }
  for (const auto& path : {folder.parent_path(), folder}) {
    std::unique_ptr<rocksdb::FSDirectory> opened;
    ADAMANT_RETURN_IF_ERROR(ReadStatus(
        files.NewDirectory(path.string(), rocksdb::IOOptions(), &opened, nullptr), path));
    ADAMANT_RETURN_IF_ERROR(ReadStatus(opened->Fsync(rocksdb::IOOptions(), nullptr), path));
  }
  return absl::OkStatus();
}

}  // namespace

SegmentStore::SegmentStore(std::uint64_t segment_bytes,
                           std::unique_ptr<KvStore> records,
                           std::unique_ptr<SegmentFiles> segments)
    : segment_bytes_(segment_bytes), records_(std::move(records)), segments_(std::move(segments)) {}

SegmentStore::~SegmentStore() { static_cast<void>(Flush()); }

absl::StatusOr<std::unique_ptr<SegmentStore>> SegmentStore::Open(
    const std::filesystem::path& folder, const SegmentStoreOptions& options) {
  const std::shared_ptr<rocksdb::FileSystem> files =
      options.env == nullptr ? rocksdb::FileSystem::Default() : options.env->GetFileSystem();
  ADAMANT_RETURN_IF_ERROR(MakeFolders(*files, std::filesystem::absolute(folder)));
  RocksDbOptions record_options;
  record_options.env = options.env;
  ADAMANT_ASSIGN_OR_RETURN(auto records, RocksDbStore::Open(folder / "records", record_options));
  ADAMANT_ASSIGN_OR_RETURN(auto segments,
                           SegmentFiles::Open(folder / "segments", options.segment_bytes, files));
  std::unique_ptr<SegmentStore> store(
      new SegmentStore(options.segment_bytes, std::move(records), std::move(segments)));
  ADAMANT_RETURN_IF_ERROR(store->LoadPlaces());
  return store;
}

absl::Status SegmentStore::LoadPlaces() {
  Places places;
  bool readable = true;
  ADAMANT_RETURN_IF_ERROR(
      records_->Scan(std::string(1, kPlace), [&](std::string_view key, std::string_view value) {
        const std::optional<Location> place = DecodePlace(value);
        readable = place.has_value();
        if (readable) {
          segments_->Reserve(place->segment);
          places.emplace(key.substr(1), *place);
        }
        return readable;
      }));
  if (!readable) {
    return absl::DataLossError("the place of a large value has the wrong length");
  }
  {
    MutexLock append(append_mutex_);
    MutexLock lock(mutex_);
    places_ = std::move(places);
    FreeUnusedSegments();
  }
  segments_->TrimFree(0);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SegmentStore::Get(std::string_view key) const {
  for (;;) {
    const Found found = Find(key);
    if (!found.outcome.has_value()) {
      absl::StatusOr<std::string> value = records_->Get(RecordKey(kValue, key));
      if (!absl::IsNotFound(value.status()) || Find(key).commits == found.commits) {
        return value;
      }
      continue;  // it may have moved into a segment meanwhile
    }
    if (const auto* value = std::get_if<std::string>(&*found.outcome)) {
      return *value;
    }
    const auto* location = std::get_if<Location>(&*found.outcome);
    if (location == nullptr) {
      return absl::NotFoundError("no such key");
    }
    absl::StatusOr<std::string> value = segments_->Read(*location);
    if (value.ok() || Find(key).outcome == found.outcome) {
      return value;
    }  // else its segment was deleted meanwhile
  }
}

absl::Status SegmentStore::Write(const std::vector<Change>& changes) {
  return WriteThrough(changes, &KvStore::Write);
}

absl::Status SegmentStore::WriteLogged(const std::vector<Change>& changes) {
  return WriteThrough(changes, &KvStore::WriteLogged);
}

absl::Status SegmentStore::WriteLazily(const std::vector<Change>& changes) {
  MutexLock append(append_mutex_);
  std::vector<Unflushed::Outcome> outcomes;
  std::uint64_t bytes = 0;
  for (const Change& change : changes) {
    if (change.erase) {
      outcomes.emplace_back(Unflushed::Erased{});
    } else if (change.value.size() < kLargeBytes) {
      outcomes.emplace_back(change.value);
    } else {
      ADAMANT_ASSIGN_OR_RETURN(const Location location, segments_->Append(change.value));
      outcomes.emplace_back(location);
      bytes += location.bytes;
    }
  }
  MutexLock lock(mutex_);
  ++calls_;
  unflushed_bytes_ += bytes;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].end.empty()) {
      unflushed_.Set(changes[i].key, std::move(outcomes[i]), calls_);
    } else {
      unflushed_.EraseRange({changes[i].key, changes[i].end, calls_});
    }
  }
  return absl::OkStatus();
}

absl::Status SegmentStore::Flush() {
  MutexLock flush(flush_mutex_);
  {
    MutexLock lock(mutex_);
    flushing_ = std::exchange(unflushed_, {});
  }
  EmptySparseSegments();
  const absl::Status status = CommitFlush();
  if (!status.ok()) {
    MutexLock lock(mutex_);
    flushing_.Append(std::exchange(unflushed_, {}));
    unflushed_ = std::exchange(flushing_, {});
  }
  return status;
}

SegmentStore::Found SegmentStore::Find(std::string_view key) const {
  MutexLock lock(mutex_);
  for (const Unflushed* changes : {&unflushed_, &flushing_}) {
    if (const Unflushed::Outcome* outcome = changes->Find(key); outcome != nullptr) {
      return {*outcome, commits_};
    }
  }
  const auto place = places_.find(key);
  return place == places_.end() ? Found{std::nullopt, commits_} : Found{place->second, commits_};
}

absl::Status SegmentStore::WriteThrough(const std::vector<Change>& changes, WriteMember write) {
  MutexLock commit(commit_mutex_);
  std::vector<Change> records;
  std::uint64_t call = 0;
  {
    MutexLock lock(mutex_);
    call = calls_;
    for (const Change& change : changes) {
      if (change.erase) {
        AppendErase(change.key, change.end, records);
      } else {
        AppendValue(change.key, change.value, places_.contains(change.key), records);
      }
    }
  }
  ADAMANT_RETURN_IF_ERROR((records_.get()->*write)(records));
  MutexLock lock(mutex_);
  ++commits_;
  for (const Change& change : changes) {
    ForgetOlder(change, call);
  }
  return absl::OkStatus();
}

void SegmentStore::ForgetOlder(const Change& change, std::uint64_t call) {
  if (change.end.empty()) {
    unflushed_.Forget(change.key, call);
    flushing_.Forget(change.key, call);
    places_.erase(change.key);
  } else if (change.key < change.end) {
    unflushed_.ForgetRange(change.key, change.end, call);
    flushing_.ForgetRange(change.key, change.end, call);
    places_.erase(places_.lower_bound(change.key), places_.lower_bound(change.end));
  }
}

absl::Status SegmentStore::CommitFlush() {
  ADAMANT_RETURN_IF_ERROR(segments_->Sync());
  std::uint64_t keep_free = 0;
  {
    MutexLock commit(commit_mutex_);
    ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/commit"));
    ADAMANT_RETURN_IF_ERROR(records_->Write(RecordsToFlush()));
    ADAMANT_FAILPOINT("storage/free");
    MutexLock append(append_mutex_);
    MutexLock lock(mutex_);
    ApplyFlushed();
    FreeUnusedSegments();
    keep_free = 2 * std::exchange(unflushed_bytes_, 0);  // not always as many become free
  }
  segments_->TrimFree(keep_free);
  return absl::OkStatus();
}

std::vector<Change> SegmentStore::RecordsToFlush() const {
  MutexLock lock(mutex_);
  std::vector<Change> records;
  for (const Unflushed::Range& range : flushing_.ranges()) {
    AppendErase(range.begin, range.end, records);
  }
  for (const auto& [key, entry] : flushing_.entries()) {
    if (const auto* place = std::get_if<Location>(&entry.outcome)) {
      AppendPlace(key, *place, records);
    } else if (const auto* value = std::get_if<std::string>(&entry.outcome)) {
      AppendValue(key, *value, places_.contains(key), records);
    } else {
      AppendErase(key, "", records);
    }
  }
  return records;
}

void SegmentStore::ApplyFlushed() {
  const Unflushed flushed = std::exchange(flushing_, {});
  for (const Unflushed::Range& range : flushed.ranges()) {
    places_.erase(places_.lower_bound(range.begin), places_.lower_bound(range.end));
  }
  for (const auto& [key, entry] : flushed.entries()) {
    if (const auto* location = std::get_if<Location>(&entry.outcome)) {
      places_.insert_or_assign(key, *location);
    } else {
      places_.erase(key);
    }
  }
  ++commits_;
}

// Whoever holds append_mutex_ knows that no value is on its way from a segment to unflushed_.
void SegmentStore::FreeUnusedSegments() {
  const std::map<std::uint64_t, std::uint64_t> used = UsedBytes();
  for (const auto& [segment, bytes] : segments_->bytes()) {
    if (!used.contains(segment) && segment != segments_->open()) {
      segments_->Free(segment);
    }
  }
}

void SegmentStore::EmptySparseSegments() {
  for (const auto& [key, place] : ValuesToMove()) {
    // A value that cannot be read stays where it is: its reader finds out.
    if (absl::IsResourceExhausted(Move(key, place))) {
      return;
    }
  }
}

std::vector<std::pair<std::string, Location>> SegmentStore::ValuesToMove() const {
  const std::map<std::uint64_t, std::uint64_t> all = segments_->bytes();
  const std::uint64_t open = segments_->open();
  MutexLock lock(mutex_);
  std::uint64_t in_use = 0;
  std::uint64_t space = 0;  // without segments that will be free anyway
  std::vector<std::pair<double, std::uint64_t>> by_share;  // of bytes in use
  const std::map<std::uint64_t, std::uint64_t> used = UsedBytes();
  for (const auto& [segment, bytes] : used) {
    const auto found = all.find(segment);
    if (found == all.end()) {
      continue;  // its file is missing
    }
    in_use += bytes;
    space += found->second;
    if (segment != open) {
      by_share.emplace_back(static_cast<double>(bytes) / static_cast<double>(found->second),
                            segment);
    }
  }
  std::sort(by_share.begin(), by_share.end());
  std::set<std::uint64_t> sparse;
  for (const auto& [share, segment] : by_share) {
    if (space <= 2 * in_use + 2 * segment_bytes_) {
      break;
    }
    space -= all.at(segment) - std::min(all.at(segment), used.at(segment));
    sparse.insert(segment);
  }
  std::vector<std::pair<std::string, Location>> result;
  for (const auto& [key, place] : places_) {
    if (sparse.contains(place.segment) && !IsUnflushed(key)) {
      result.emplace_back(key, place);
    }
  }
  return result;
}

std::map<std::uint64_t, std::uint64_t> SegmentStore::UsedBytes() const {
  std::map<std::uint64_t, std::uint64_t> used;
  for (const auto& [key, place] : places_) {
    if (!IsUnflushed(key)) {
      used[place.segment] += place.bytes;
    }
  }
  for (const Unflushed* changes : {&flushing_, &unflushed_}) {
    for (const auto& [key, entry] : changes->entries()) {
      if (const auto* place = std::get_if<Location>(&entry.outcome)) {
        used[place->segment] += place->bytes;
      }
    }
  }
  return used;
}

bool SegmentStore::IsUnflushed(std::string_view key) const {
  return unflushed_.Find(key) != nullptr || flushing_.Find(key) != nullptr;
}

absl::Status SegmentStore::Move(const std::string& key, const Location& from) {
  ADAMANT_FAILPOINT("storage/move");
  ADAMANT_ASSIGN_OR_RETURN(const std::string value, segments_->Read(from));
  MutexLock append(append_mutex_);
  ADAMANT_ASSIGN_OR_RETURN(const Location to, segments_->Append(value));
  MutexLock lock(mutex_);
  const auto place = places_.find(key);
  if (place != places_.end() && place->second == from && !IsUnflushed(key)) {
    flushing_.Set(key, to, 0);
  }
  return absl::OkStatus();
}

}  // namespace adamant::storage
