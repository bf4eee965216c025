#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"
#include "services/common/storage/segments/overlay.h"
#include "services/common/storage/segments/segment_files.h"
#include "services/common/storage/segments/value_index.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace adamant::storage {

struct SegmentStoreOptions {
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;  ///< a file is at most a value larger

  /// The file system, for tests; must outlive the store. Null: that of this machine.
  rocksdb::Env* env = nullptr;
};

/// A KvStore for many large values that are rewritten again and again. Lazily written values of
/// kLargeBytes or more go straight to the disk, appended to segment files; everything else lives in
/// RocksDB, and so does the place (file, offset, length, checksum) of each large value. Several
/// times as fast as RocksDB alone, with less CPU and no second copy of a value:
/// docs/design/0008-segment-store.md.
///
/// Flush syncs the segments and then writes, in one synced batch, all places and all small values
/// that were lazily written since the last one. That batch is the commit point: after a crash the
/// store holds what the last successful Flush left, and the writes that were not lazy.
///
/// Space: a segment is deleted once no value in it is in use. Flush moves values out of the
/// sparsest segments until all take at most twice the bytes in use and two segments more. Between
/// flushes what was lazily written comes on top. Files that a crash left unused go when the store
/// is opened.
///
/// Memory: the key and place of every large value, and the small ones since the last flush.
///
/// Threads: lazy writes wait for each other's disk writes, the others for each other's; reads wait
/// for nobody. A batch is one unit to a crash, but a reader may see it half done.
class SegmentStore final : public KvStore {
 public:
  static constexpr std::size_t kLargeBytes = std::size_t{64} << 10;

  /// Opens or creates the store in `folder`; its parent must exist. Errors: those of RocksDbStore.
  static absl::StatusOr<std::unique_ptr<SegmentStore>> Open(
      const std::filesystem::path& folder, const SegmentStoreOptions& options = {});
  /// Flushes.
  ~SegmentStore() override;

  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Write(const std::vector<Change>& changes) override;
  absl::Status WriteLogged(const std::vector<Change>& changes) override;
  absl::Status WriteLazily(const std::vector<Change>& changes) override;
  absl::Status Flush() override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

 private:
  using WriteMember = absl::Status (KvStore::*)(const std::vector<Change>&);
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;

  SegmentStore(std::uint64_t segment_bytes,
               std::unique_ptr<KvStore> records,
               std::unique_ptr<SegmentFiles> segments);

  absl::Status LoadPlaces();
  absl::StatusOr<bool> Show(Overlay& overlay,
                            std::optional<std::string_view> end,
                            const Visit& visit) const;
  absl::Status WriteThrough(const std::vector<Change>& changes, WriteMember write);
  absl::Status CommitFlush();
  void FreeUnusedSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(append_mutex_);
  void EmptySparseSegments();
  absl::Status Move(const std::string& key, const Location& from);

  // Constant after construction.
  const std::uint64_t segment_bytes_;
  const std::unique_ptr<KvStore> records_;
  const std::unique_ptr<SegmentFiles> segments_;

  // Lock order: as they stand here. All are held over the disk.
  Mutex flush_mutex_;   // one flush at a time
  Mutex commit_mutex_;  // one change of the records at a time
  Mutex append_mutex_;  // what is appended to a segment is also in index_

  ValueIndex index_;
};

}  // namespace adamant::storage
