#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"
#include "services/common/storage/segments/overlay.h"
#include "services/common/storage/segments/segment_files.h"
#include "services/common/storage/segments/unflushed.h"

namespace adamant::storage {

/// Index of the values of a SegmentStore: those that a flush has yet to write, and the places of
/// large values as the records have them. It numbers the lazy writes (calls) and counts the changes
/// of the records (commits).
///
/// Callers that change the records, or let a flush end, do so one at a time: they read what to
/// write, write it, and say so here.
/// Threads: any; no call waits for the disk.
class ValueIndex {
 public:
  using Places = std::map<std::string, Location, std::less<>>;
  using SegmentBytes = std::map<std::uint64_t, std::uint64_t>;  ///< by segment

  /// Place at which to look for a key.
  struct Found {
    std::optional<Unflushed::Outcome> outcome;  ///< none: look among the records
    std::uint64_t commits = 0;
  };

  /// Changes that a write makes in the records.
  struct RecordWrite {
    std::vector<Change> records;
    std::uint64_t call = 0;  ///< the last lazy write before it
  };

  /// The places that the records have when they are opened.
  void Load(Places places);

  [[nodiscard]] Found Find(std::string_view key) const;
  [[nodiscard]] std::uint64_t commits() const;

  /// The keys with this prefix whose value is changed or large.
  [[nodiscard]] Overlay OverlayOf(std::string_view prefix) const;

  /// Lazy changes, as one call: `outcomes` has one for each, which counts unless the change erases
  /// a range. The bytes at their locations have been appended.
  void Add(const std::vector<Change>& changes, std::vector<Unflushed::Outcome> outcomes);

  /// Returns what `changes`, past all lazy writes, do to the records.
  [[nodiscard]] RecordWrite RecordsOf(const std::vector<Change>& changes) const;

  /// The records hold `changes`; lazy writes up to `call` of the same keys no longer count.
  void ApplyWritten(const std::vector<Change>& changes, std::uint64_t call);

  /// All lazy writes so far belong to the flush that begins.
  void BeginFlush();

  /// Returns what the flush that has begun does to the records.
  [[nodiscard]] std::vector<Change> RecordsToFlush() const;

  /// The records hold what the flush wrote. Returns how many bytes were appended since the last
  /// flush.
  std::uint64_t ApplyFlushed();

  /// The flush has failed: its changes wait for the next, with the later ones.
  void UndoFlush();

  /// Bytes of values in use.
  [[nodiscard]] SegmentBytes UsedBytes() const;

  /// The values to move so that the segments, which take `all`, take at most twice the bytes in use
  /// and 2 * `segment_bytes` more: those of the sparsest segments, without `open`.
  [[nodiscard]] std::vector<std::pair<std::string, Location>> ValuesToMove(
      const SegmentBytes& all, std::uint64_t open, std::uint64_t segment_bytes) const;

  /// The value of `key` at `from` is also at `to`, which the flush that has begun is to write.
  /// Without effect if the key has another value by now.
  void Move(const std::string& key, const Location& from, const Location& to);

 private:
  void ForgetOlder(const Change& change, std::uint64_t call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] SegmentBytes CountUsedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool IsUnflushed(std::string_view key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Unflushed unflushed_ ABSL_GUARDED_BY(mutex_);
  Unflushed flushing_ ABSL_GUARDED_BY(mutex_);                 // older than unflushed_
  Places places_ ABSL_GUARDED_BY(mutex_);                      // as in the records
  std::uint64_t unflushed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // appended since the last flush
  std::uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t commits_ ABSL_GUARDED_BY(mutex_) = 0;  // changes of the records
};

}  // namespace adamant::storage
