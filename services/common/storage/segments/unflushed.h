#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "services/common/storage/kv_store.h"
#include "services/common/storage/segments/segment_files.h"

namespace adamant::storage {

/// Changes that were made in memory and not yet on disk, folded: the last one of each key.
/// Threads: one.
class Unflushed {
 public:
  struct Erased {
    friend bool operator==(Erased, Erased) = default;
  };
  /// State of a key after the changes: its value, or where that lies, or nothing.
  using Outcome = std::variant<std::string, Location, Erased>;
  struct Range {
    std::string begin;
    std::string end;  ///< past the last key
    std::uint64_t call = 0;

    [[nodiscard]] bool Covers(std::string_view key) const { return begin <= key && key < end; }
  };
  struct Entry {
    Outcome outcome;
    std::uint64_t call = 0;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  /// `call` numbers the calls by which the changes came.
  void Set(std::string key, Outcome outcome, std::uint64_t call);
  void EraseRange(Range range);

  /// The changes up to `call` of a key, or of a range, no longer count: a later one is on disk.
  void Forget(std::string_view key, std::uint64_t call);
  void ForgetRange(std::string_view begin, std::string_view end, std::uint64_t call);

  /// Null: no change of this key.
  [[nodiscard]] const Outcome* Find(std::string_view key) const;

  /// Adds what happened later. This is then everything.
  void Append(Unflushed&& later);

  /// To be applied first, and in order.
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  /// To be applied then, in any order.
  [[nodiscard]] const Entries& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return ranges_.empty() && entries_.empty(); }

 private:
  std::vector<Range> ranges_;
  Entries entries_;
};

}  // namespace adamant::storage
