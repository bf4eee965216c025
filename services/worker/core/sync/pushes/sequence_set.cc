#include "services/worker/core/sync/pushes/sequence_set.h"

#include <algorithm>

namespace adamant::worker {

std::uint64_t SequenceSet::Insert(Sequence begin, Sequence end) {
  const auto first = std::ranges::lower_bound(ranges_, begin, {}, &Range::end);
  Range merged = {.begin = begin, .end = end};
  std::uint64_t known = 0;
  auto last = first;
  for (; last != ranges_.end() && last->begin <= end; ++last) {
    known += std::min(end, last->end) - std::max(begin, last->begin);
    merged.begin = std::min(merged.begin, last->begin);
    merged.end = std::max(merged.end, last->end);
  }
  ranges_.insert(ranges_.erase(first, last), merged);
  return end - begin - known;
}

Sequence SequenceSet::FirstOutside(Sequence sequence) const {
  const auto range = std::ranges::upper_bound(ranges_, sequence, {}, &Range::end);
  return range != ranges_.end() && range->begin <= sequence ? range->end : sequence;
}

}  // namespace adamant::worker
