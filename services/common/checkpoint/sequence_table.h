#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/ids.h"

namespace adamant::checkpoint {

/// Updates of one shard that have been applied: per worker slot the current incarnation and its
/// last sequence. Part of the shard's value: copied, stored and restored with it, so an update is
/// applied once however often it is sent.
/// Threads: one at a time.
class SequenceTable {
 public:
  struct Entry {
    std::uint32_t slot = 0;
    Incarnation incarnation = 0;
    Sequence sequence = 0;

    bool operator==(const Entry&) const = default;
  };

  enum class Verdict {
    kNext,        ///< accepted and recorded: apply it
    kDuplicate,   ///< was applied before
    kUnexpected,  ///< something before it is missing
    kStale,       ///< a higher incarnation has the slot
  };

  SequenceTable() = default;
  explicit SequenceTable(std::vector<Entry> entries);  // one per slot, any order

  /// Judges an update. Sequences of an incarnation start at 1 and rise by 1; `after_loss` accepts a
  /// gap.
  Verdict Admit(const protocol::WorkerId& writer, Sequence sequence, bool after_loss);

  /// The last sequence recorded for this incarnation; 0 if there is none.
  [[nodiscard]] Sequence LastOf(const protocol::WorkerId& writer) const;

  /// By slot.
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // sorted by slot
};

}  // namespace adamant::checkpoint
