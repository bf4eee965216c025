#pragma once

#include <cstdint>
#include <vector>

#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// A set of sequences, kept as ranges. Threads: one at a time.
class SequenceSet {
 public:
  /// Adds begin, …, end - 1; returns how many of them are new. `begin` < `end`.
  std::uint64_t Insert(Sequence begin, Sequence end);

  [[nodiscard]] bool Contains(Sequence sequence) const {
    return FirstOutside(sequence) != sequence;
  }

  /// The first sequence from this one on that is not in the set.
  [[nodiscard]] Sequence FirstOutside(Sequence sequence) const;

 private:
  struct Range {
    Sequence begin = 0;
    Sequence end = 0;
  };

  std::vector<Range> ranges_;  // ascending, with gaps between them
};

}  // namespace adamant::worker
