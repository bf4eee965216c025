#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace rocksdb {
class FileSystem;
class FSWritableFile;
}  // namespace rocksdb

namespace adamant::storage {

/// Place of a value.
struct Location {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;  ///< in bytes; a multiple of the alignment
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< of these bytes: see Checksum

  friend bool operator==(const Location&, const Location&) = default;
};

/// A folder of numbered files that values are appended to, past the page cache (O_DIRECT, where the
/// file system has it). It does not know which values are still needed. A file that is needed no
/// more is written anew under another number, which is much faster than to delete and allocate.
/// Threads: Append one at a time, and Sync one at a time; all may run at once.
/// Errors: ResourceExhausted when the disk is full or no more files may be opened, and nothing was
/// appended; else DataLoss for what cannot be written or synced; each names the file.
class SegmentFiles {
 public:
  /// Uses the files in `folder`, which exists. A new one is begun when the last one has reached
  /// `segment_bytes`.
  static absl::StatusOr<std::unique_ptr<SegmentFiles>> Open(
      const std::filesystem::path& folder,
      std::uint64_t segment_bytes,
      std::shared_ptr<rocksdb::FileSystem> file_system);
  ~SegmentFiles();

  absl::StatusOr<Location> Append(std::string_view value);

  /// Makes all that was appended durable. After a failure nothing can be appended or synced any
  /// more, because the system may have forgotten what it could not write.
  absl::Status Sync();

  /// Reads from the disk, not from the page cache. Nothing more is appended to a file that a value
  /// could not be read from: it may not be the one that is open under its name.
  /// Errors: DataLoss when the bytes are not there or are not those that were appended;
  /// Unavailable when the disk does not answer; ResourceExhausted when no more files may be opened.
  [[nodiscard]] absl::StatusOr<std::string> Read(const Location& location) const;

  /// Bytes by segment.
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t> bytes() const;

  /// The segment that is appended to; 0: none yet.
  [[nodiscard]] std::uint64_t open() const;

  /// The value of this segment, which is not open, is needed no more: its file may be reused.
  void Free(std::uint64_t segment);

  /// Deletes free files until those left have at most `bytes`.
  void TrimFree(std::uint64_t bytes);

  /// New segments get higher numbers than this one.
  void Reserve(std::uint64_t segment);

 private:
  struct FreeAligned {
    void operator()(char* buffer) const { std::free(buffer); }
  };
  using Buffer = std::unique_ptr<char, FreeAligned>;
  using File = std::shared_ptr<rocksdb::FSWritableFile>;

  SegmentFiles(std::filesystem::path folder,
               std::uint64_t segment_bytes,
               std::shared_ptr<rocksdb::FileSystem> file_system);

  [[nodiscard]] std::string PathOf(std::uint64_t segment) const;
  [[nodiscard]] absl::StatusOr<std::string> ReadValue(const Location& location) const;
  [[nodiscard]] Buffer TakeBuffer() const;
  void GiveBack(Buffer buffer) const;
  absl::Status List();
  absl::StatusOr<File> FileToAppendTo();
  absl::StatusOr<File> Begin(std::uint64_t segment, std::uint64_t reused);
  absl::Status WritePadded(rocksdb::FSWritableFile& file, std::uint64_t at, std::string_view value);
  absl::Status SyncFiles(const std::vector<File>& files, bool folder_changed);

  // Constant after construction.
  const std::filesystem::path folder_;
  const std::uint64_t segment_bytes_;
  const std::shared_ptr<rocksdb::FileSystem> file_system_;

  // Guarded.
  mutable Mutex mutex_;
  mutable std::vector<Buffer> idle_ ABSL_GUARDED_BY(mutex_);  // as many as ever read at once
  std::map<std::uint64_t, std::uint64_t> bytes_ ABSL_GUARDED_BY(mutex_);  // by segment
  std::map<std::uint64_t, std::uint64_t> free_ ABSL_GUARDED_BY(mutex_);   // likewise
  std::uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  File open_ ABSL_GUARDED_BY(mutex_);  // segment next_ - 1; null: none yet
  mutable bool open_is_damaged_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<File> unsynced_ ABSL_GUARDED_BY(mutex_);  // without open_
  bool folder_changed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);  // of a sync

  const Buffer buffer_;  // of Append
};

}  // namespace adamant::storage
