#include "services/common/storage/segments/segment_store.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <map>
#include <optional>
#include <utility>
#include <variant>

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
  ValueIndex::Places places;
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
  index_.Load(std::move(places));
  {
    MutexLock append(append_mutex_);
    FreeUnusedSegments();
  }
  segments_->TrimFree(0);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SegmentStore::Get(std::string_view key) const {
  for (;;) {
    const ValueIndex::Found found = index_.Find(key);
    if (!found.outcome.has_value()) {
      absl::StatusOr<std::string> value = records_->Get(RecordKey(kValue, key));
      if (!absl::IsNotFound(value.status()) || index_.commits() == found.commits) {
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
    if (value.ok() || index_.Find(key).outcome == found.outcome) {
      return value;
    }  // else its segment was deleted meanwhile
  }
}

// What is in memory laid over the records, in the order of the keys.
absl::Status SegmentStore::Scan(std::string_view prefix, const Visit& visit) const {
  for (;;) {
    Overlay overlay = index_.OverlayOf(prefix);
    // Once the first record comes, or none, the records stand still: were they those that the
    // overlay was made for?
    bool checked = false;
    bool fits = true;
    bool go_on = true;
    absl::Status status;
    const auto check = [&] {
      fits = checked ? fits : index_.commits() == overlay.commits();
      checked = true;
      return fits;
    };
    const auto show = [&](std::optional<std::string_view> end) {
      absl::StatusOr<bool> shown = Show(overlay, end, visit);
      status = shown.status();
      go_on = shown.ok() && *shown;
      return go_on;
    };
    ADAMANT_RETURN_IF_ERROR(records_->Scan(
        kValue + std::string(prefix), [&](std::string_view record_key, std::string_view value) {
          const std::string_view key = record_key.substr(1);
          if (!check() || !show(key)) {
            return false;
          }
          if (overlay.Has(key)) {
            return true;  // comes with the next
          }
          go_on = overlay.Hides(key) || visit(key, value);
          return go_on;
        }));
    if (!check()) {
      continue;
    }
    if (go_on) {
      show(std::nullopt);
    }
    return status;
  }
}

// Visits what comes before `end` (all that is left without `end`), and takes it from the
// overlay. False: `visit` has had enough.
absl::StatusOr<bool> SegmentStore::Show(Overlay& overlay,
                                        std::optional<std::string_view> end,
                                        const Visit& visit) const {
  while (const auto next = overlay.TakeBefore(end)) {
    if (const auto* value = std::get_if<std::string>(&next.mapped())) {
      if (!visit(next.key(), *value)) {
        return false;
      }
    } else if (std::holds_alternative<Location>(next.mapped())) {
      const absl::StatusOr<std::string> read = Get(next.key());
      if (!read.ok() && !absl::IsNotFound(read.status())) {
        return read.status();
      }
      if (read.ok() && !visit(next.key(), *read)) {
        return false;
      }
    }
  }
  return true;
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
  for (const Change& change : changes) {
    if (change.erase) {
      outcomes.emplace_back(Unflushed::Erased{});
    } else if (change.value.size() < kLargeBytes) {
      outcomes.emplace_back(change.value);
    } else {
      ADAMANT_ASSIGN_OR_RETURN(const Location location, segments_->Append(change.value));
      outcomes.emplace_back(location);
    }
  }
  index_.Add(changes, std::move(outcomes));
  return absl::OkStatus();
}

absl::Status SegmentStore::Flush() {
  MutexLock flush(flush_mutex_);
  index_.BeginFlush();
  EmptySparseSegments();
  const absl::Status status = CommitFlush();
  if (!status.ok()) {
    index_.UndoFlush();
  }
  return status;
}

absl::Status SegmentStore::WriteThrough(const std::vector<Change>& changes, WriteMember write) {
  MutexLock commit(commit_mutex_);
  const ValueIndex::RecordWrite written = index_.RecordsOf(changes);
  ADAMANT_RETURN_IF_ERROR((records_.get()->*write)(written.records));
  index_.ApplyWritten(changes, written.call);
  return absl::OkStatus();
}

absl::Status SegmentStore::CommitFlush() {
  ADAMANT_RETURN_IF_ERROR(segments_->Sync());
  std::uint64_t keep_free = 0;
  {
    MutexLock commit(commit_mutex_);
    ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/commit"));
    ADAMANT_RETURN_IF_ERROR(records_->Write(index_.RecordsToFlush()));
    ADAMANT_FAILPOINT("storage/free");
    MutexLock append(append_mutex_);
    keep_free = 2 * index_.ApplyFlushed();  // not always as many become free
    FreeUnusedSegments();
  }
  segments_->TrimFree(keep_free);
  return absl::OkStatus();
}

// Whoever holds append_mutex_ knows that no value is on its way from a segment to the index.
void SegmentStore::FreeUnusedSegments() {
  const ValueIndex::SegmentBytes used = index_.UsedBytes();
  for (const auto& [segment, bytes] : segments_->bytes()) {
    if (!used.contains(segment) && segment != segments_->open()) {
      segments_->Free(segment);
    }
  }
}

void SegmentStore::EmptySparseSegments() {
  const ValueIndex::SegmentBytes all = segments_->bytes();
  const std::uint64_t open = segments_->open();
  for (const auto& [key, place] : index_.ValuesToMove(all, open, segment_bytes_)) {
    // A value that cannot be read stays where it is: its reader finds out.
    if (absl::IsResourceExhausted(Move(key, place))) {
      return;
    }
  }
}

absl::Status SegmentStore::Move(const std::string& key, const Location& from) {
  ADAMANT_FAILPOINT("storage/move");
  ADAMANT_ASSIGN_OR_RETURN(const std::string value, segments_->Read(from));
  MutexLock append(append_mutex_);
  ADAMANT_ASSIGN_OR_RETURN(const Location to, segments_->Append(value));
  index_.Move(key, from, to);
  return absl::OkStatus();
}

}  // namespace adamant::storage
