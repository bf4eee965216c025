#include "services/common/storage/segments/segment_files.h"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/storage/rocksdb/file_kinds.h"
#include "services/common/storage/rocksdb/rocksdb_status.h"

namespace adamant::storage {
namespace {

constexpr std::uint64_t kAlignment = 4096;  // of memory, offsets and lengths: enough for any disk
constexpr std::uint64_t kBufferBytes = std::uint64_t{2} << 20;  // a shard goes in one piece
constexpr std::string_view kEnding = ".segment";

constexpr std::uint64_t Padded(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Reads the value, or less where the file ends, by way of the aligned `buffer` of kBufferBytes.
rocksdb::IOStatus ReadPieces(const rocksdb::FSRandomAccessFile& file,
                             const Location& location,
                             char* buffer,
                             std::string& value) {
  value.reserve(location.bytes);
  while (value.size() < location.bytes) {
    const std::uint64_t wanted = std::min(kBufferBytes, location.bytes - value.size());
    rocksdb::Slice piece;
    rocksdb::IOStatus status = file.Read(location.offset + value.size(),
                                         Padded(wanted),
                                         rocksdb::IOOptions(),
                                         &piece,
                                         buffer,
                                         nullptr);
    if (!status.ok()) {
      return status;
    }
    value.append(piece.data(), std::min<std::uint64_t>(piece.size(), wanted));
    if (piece.size() < wanted) {
      break;
    }
  }
  return rocksdb::IOStatus::OK();
}

std::uint64_t ChecksumOf(std::string_view bytes) {
  return Checksum(std::as_bytes(std::span(bytes)));
}

// The number of the segment with this file name; 0 if it is none.
std::uint64_t NumberOf(std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::string_view rest = name.substr(static_cast<std::size_t>(end - name.data()));
  return error == std::errc() && rest == kEnding ? number : 0;
}

}  // namespace

SegmentFiles::SegmentFiles(std::filesystem::path folder,
                           std::uint64_t segment_bytes,
                           std::shared_ptr<rocksdb::FileSystem> file_system)
    : folder_(std::move(folder)),
      segment_bytes_(segment_bytes),
      file_system_(std::move(file_system)),
      buffer_(TakeBuffer()) {}

SegmentFiles::~SegmentFiles() = default;

absl::StatusOr<std::unique_ptr<SegmentFiles>> SegmentFiles::Open(
    const std::filesystem::path& folder,
    std::uint64_t segment_bytes,
    std::shared_ptr<rocksdb::FileSystem> file_system) {
  std::unique_ptr<SegmentFiles> files(
      new SegmentFiles(folder, segment_bytes, std::move(file_system)));
  ADAMANT_RETURN_IF_ERROR(files->List());
  return files;
}

absl::StatusOr<Location> SegmentFiles::Append(std::string_view value) {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/append"));
  ADAMANT_ASSIGN_OR_RETURN(const File file, FileToAppendTo());
  Location location{.segment = 0, .offset = 0, .bytes = value.size(), .checksum = 0};
  {
    MutexLock lock(mutex_);
    location.segment = next_ - 1;
    location.offset = bytes_[location.segment];
  }
  ADAMANT_RETURN_IF_ERROR(WritePadded(*file, location.offset, value));
  location.checksum = ChecksumOf(value);
  MutexLock lock(mutex_);
  bytes_[location.segment] += Padded(value.size());
  return location;
}

absl::Status SegmentFiles::Sync() {
  std::vector<File> files;
  bool folder_changed = false;
  {
    MutexLock lock(mutex_);
    ADAMANT_RETURN_IF_ERROR(failed_);
    files = std::exchange(unsynced_, {});
    if (open_ != nullptr) {
      files.push_back(open_);
    }
    folder_changed = std::exchange(folder_changed_, false);
  }
  absl::Status status = SyncFiles(files, folder_changed);
  MutexLock lock(mutex_);
  failed_ = status;
  return status;
}

absl::StatusOr<std::string> SegmentFiles::Read(const Location& location) const {
  absl::StatusOr<std::string> value = ReadValue(location);
  if (!value.ok() && !absl::IsResourceExhausted(value.status())) {
    MutexLock lock(mutex_);
    open_is_damaged_ = open_is_damaged_ || location.segment == next_ - 1;
  }
  return value;
}

absl::StatusOr<std::string> SegmentFiles::ReadValue(const Location& location) const {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/read"));
  const std::string path = PathOf(location.segment);
  ADAMANT_RETURN_IF_ERROR(CheckIsFile(path));
  rocksdb::IOStatus status;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  for (const bool direct : {true, false}) {  // not every file system has O_DIRECT
    rocksdb::FileOptions options;
    options.use_direct_reads = direct;
    status = file_system_->NewRandomAccessFile(path, options, &file, nullptr);
    if (status.ok()) {
      break;
    }
  }
  if (status.IsPathNotFound() || status.IsNotFound()) {
    return absl::DataLossError(path + ": missing");
  }
  ADAMANT_RETURN_IF_ERROR(OpenStatus(status, path));
  Buffer buffer = TakeBuffer();
  std::string value;
  status = ReadPieces(*file, location, buffer.get(), value);
  GiveBack(std::move(buffer));
  ADAMANT_RETURN_IF_ERROR(ReadStatus(status, path));
  if (value.size() != location.bytes || ChecksumOf(value) != location.checksum) {
    return absl::DataLossError(path + ": checksum mismatch at byte " +
                               std::to_string(location.offset));
  }
  return value;
}

std::map<std::uint64_t, std::uint64_t> SegmentFiles::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

std::uint64_t SegmentFiles::open() const {
  MutexLock lock(mutex_);
  return open_ == nullptr ? 0 : next_ - 1;
}

void SegmentFiles::Free(std::uint64_t segment) {
  MutexLock lock(mutex_);
  free_.insert(bytes_.extract(segment));
}

void SegmentFiles::TrimFree(std::uint64_t bytes) {
  std::vector<std::uint64_t> surplus;
  {
    MutexLock lock(mutex_);
    for (auto at = free_.begin(); at != free_.end();) {
      if (at->second <= bytes) {
        bytes -= at->second;
        ++at;
      } else {
        surplus.push_back(at->first);
        at = free_.erase(at);
      }
    }
  }
  for (const std::uint64_t segment : surplus) {
    // What cannot be deleted now is found when the folder is opened next.
    static_cast<void>(file_system_->DeleteFile(PathOf(segment), rocksdb::IOOptions(), nullptr));
  }
}

void SegmentFiles::Reserve(std::uint64_t segment) {
  MutexLock lock(mutex_);
  next_ = std::max(next_, segment + 1);
}

std::string SegmentFiles::PathOf(std::uint64_t segment) const {
  return (folder_ / (std::to_string(segment) + std::string(kEnding))).string();
}

SegmentFiles::Buffer SegmentFiles::TakeBuffer() const {
  MutexLock lock(mutex_);
  if (idle_.empty()) {
    return Buffer(static_cast<char*>(std::aligned_alloc(kAlignment, kBufferBytes)));
  }
  Buffer buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void SegmentFiles::GiveBack(Buffer buffer) const {
  MutexLock lock(mutex_);
  idle_.push_back(std::move(buffer));
}

absl::Status SegmentFiles::List() {
  std::vector<std::string> names;
  ADAMANT_RETURN_IF_ERROR(ReadStatus(
      file_system_->GetChildren(folder_.string(), rocksdb::IOOptions(), &names, nullptr), folder_));
  MutexLock lock(mutex_);
  for (const std::string& name : names) {
    const std::uint64_t number = NumberOf(name);
    if (number == 0) {
      continue;
    }
    next_ = std::max(next_, number + 1);
    if (!CheckIsFile(PathOf(number)).ok()) {
      continue;  // as one that is missing; nor is it reused
    }
    ADAMANT_RETURN_IF_ERROR(ReadStatus(
        file_system_->GetFileSize(PathOf(number), rocksdb::IOOptions(), &bytes_[number], nullptr),
        PathOf(number)));
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentFiles::File> SegmentFiles::FileToAppendTo() {
  std::uint64_t segment = 0;
  std::uint64_t reused = 0;
  std::uint64_t reused_bytes = 0;
  {
    MutexLock lock(mutex_);
    ADAMANT_RETURN_IF_ERROR(failed_);
    if (open_ != nullptr && bytes_[next_ - 1] < segment_bytes_ && !open_is_damaged_) {
      return open_;
    }
    segment = next_;
    if (!free_.empty()) {
      std::tie(reused, reused_bytes) = *free_.begin();
      free_.erase(free_.begin());
    }
  }
  if (reused != 0 && !CheckIsFile(PathOf(reused)).ok()) {
    reused = 0;
  }
  absl::StatusOr<File> file = Begin(segment, reused);
  MutexLock lock(mutex_);
  if (!file.ok()) {
    if (reused != 0) {
      free_.emplace(reused, reused_bytes);  // for the next try
    }
    return file.status();
  }
  if (open_ != nullptr) {
    unsynced_.push_back(std::move(open_));
  }
  open_ = *std::move(file);
  open_is_damaged_ = false;
  bytes_[segment] = 0;
  ++next_;
  folder_changed_ = true;
  return open_;
}

// `reused`: the free file to be used; 0: none.
absl::StatusOr<SegmentFiles::File> SegmentFiles::Begin(std::uint64_t segment,
                                                       std::uint64_t reused) {
  rocksdb::IOStatus status;
  for (const bool direct : {true, false}) {  // not every file system has O_DIRECT
    rocksdb::FileOptions options;
    options.use_direct_writes = direct;
    std::unique_ptr<rocksdb::FSWritableFile> file;
    status = reused == 0 ? file_system_->NewWritableFile(PathOf(segment), options, &file, nullptr)
                         : file_system_->ReuseWritableFile(
                               PathOf(segment), PathOf(reused), options, &file, nullptr);
    if (status.ok()) {
      return file;
    }
  }
  // Where no more files may be opened nothing is lost yet.
  return IsOutOfFiles(status) ? OpenStatus(status, PathOf(segment))
                              : WriteStatus(status, PathOf(segment));
}

absl::Status SegmentFiles::WritePadded(rocksdb::FSWritableFile& file,
                                       std::uint64_t at,
                                       std::string_view value) {
  while (!value.empty()) {
    const std::string_view piece = value.substr(0, kBufferBytes);
    std::memcpy(buffer_.get(), piece.data(), piece.size());
    std::memset(buffer_.get() + piece.size(), 0, Padded(piece.size()) - piece.size());
    const std::uint64_t bytes = Padded(piece.size());
    const rocksdb::IOStatus written =
        file.PositionedAppend({buffer_.get(), bytes}, at, rocksdb::IOOptions(), nullptr);
    if (!written.ok() && ExceedsFileSizeLimit(at + bytes)) {
      return SystemError(EFBIG, "cannot write to a file of more than the limit in", folder_);
    }
    ADAMANT_RETURN_IF_ERROR(WriteStatus(written, folder_));
    at += piece.size();
    value.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::Status SegmentFiles::SyncFiles(const std::vector<File>& files, bool folder_changed) {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("storage/sync"));
  for (const File& file : files) {
    ADAMANT_RETURN_IF_ERROR(SyncStatus(file->Sync(rocksdb::IOOptions(), nullptr), folder_));
  }
  if (!folder_changed) {
    return absl::OkStatus();
  }
  std::unique_ptr<rocksdb::FSDirectory> folder;
  ADAMANT_RETURN_IF_ERROR(SyncStatus(
      file_system_->NewDirectory(folder_.string(), rocksdb::IOOptions(), &folder, nullptr),
      folder_));
  return SyncStatus(folder->Fsync(rocksdb::IOOptions(), nullptr), folder_);
}

}  // namespace adamant::storage
