#include "services/common/checkpoint/sequence_table.h"

#include <algorithm>
#include <utility>

namespace adamant::checkpoint {

SequenceTable::SequenceTable(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::sort(entries_, {}, &Entry::slot);
}

SequenceTable::Verdict SequenceTable::Admit(const protocol::WorkerId& writer,
                                            Sequence sequence,
                                            bool after_loss) {
  auto entry = std::ranges::lower_bound(entries_, writer.slot, {}, &Entry::slot);
  const bool known = entry != entries_.end() && entry->slot == writer.slot;
  if (known && writer.incarnation < entry->incarnation) {
    return Verdict::kStale;
  }
  const Sequence last =
      known && writer.incarnation == entry->incarnation ? entry->sequence : Sequence(0);
  if (sequence <= last) {
    return Verdict::kDuplicate;
  }
  if (sequence > last + 1 && !after_loss) {
    return Verdict::kUnexpected;
  }
  if (!known) {
    entry = entries_.insert(entry, Entry{});
  }
  *entry = {.slot = writer.slot, .incarnation = writer.incarnation, .sequence = sequence};
  return Verdict::kNext;
}

Sequence SequenceTable::LastOf(const protocol::WorkerId& writer) const {
  const auto entry = std::ranges::lower_bound(entries_, writer.slot, {}, &Entry::slot);
  const bool current = entry != entries_.end() && entry->slot == writer.slot &&
                       entry->incarnation == writer.incarnation;
  return current ? entry->sequence : Sequence(0);
}

}  // namespace adamant::checkpoint
