#include "services/common/storage/segments/overlay.h"

#include <algorithm>
#include <utility>

namespace adamant::storage {

void Overlay::Set(const std::string& key, Unflushed::Outcome outcome) {
  outcomes_.insert_or_assign(key, std::move(outcome));
}

void Overlay::Erase(const Unflushed::Range& range) {
  outcomes_.erase(outcomes_.lower_bound(range.begin), outcomes_.lower_bound(range.end));
  erased_.push_back(range);
}

bool Overlay::Hides(std::string_view key) const {
  return std::any_of(erased_.begin(), erased_.end(), [key](const Unflushed::Range& range) {
    return range.Covers(key);
  });
}

Overlay::Outcomes::node_type Overlay::TakeBefore(std::optional<std::string_view> end) {
  const auto first = outcomes_.begin();
  if (first == outcomes_.end() || (end.has_value() && first->first >= *end)) {
    return {};
  }
  return outcomes_.extract(first);
}

}  // namespace adamant::storage
