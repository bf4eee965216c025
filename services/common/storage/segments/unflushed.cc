#include "services/common/storage/segments/unflushed.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace adamant::storage {
namespace {

constexpr Unflushed::Outcome kErased = Unflushed::Erased{};

}  // namespace

void Unflushed::Set(std::string key, Outcome outcome, std::uint64_t call) {
  entries_.insert_or_assign(std::move(key), Entry{std::move(outcome), call});
}

void Unflushed::EraseRange(Range range) {
  if (range.begin < range.end) {
    entries_.erase(entries_.lower_bound(range.begin), entries_.lower_bound(range.end));
    ranges_.push_back(std::move(range));
  }
}

void Unflushed::Forget(std::string_view key, std::uint64_t call) {
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.call <= call) {
    entries_.erase(found);
  }
  for (std::size_t i = ranges_.size(); i-- > 0;) {
    if (ranges_[i].Covers(key) && ranges_[i].call <= call) {
      Range after{std::string(key) + '\0', std::move(ranges_[i].end), ranges_[i].call};
      ranges_[i].end = key;
      ranges_.push_back(std::move(after));
    }
  }
  std::erase_if(ranges_, [](const Range& range) { return range.begin >= range.end; });
}

void Unflushed::ForgetRange(std::string_view begin, std::string_view end, std::uint64_t call) {
  auto at = entries_.lower_bound(begin);
  while (at != entries_.end() && at->first < end) {
    at = at->second.call <= call ? entries_.erase(at) : std::next(at);
  }
}

const Unflushed::Outcome* Unflushed::Find(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    return &found->second.outcome;
  }
  const bool erased = std::any_of(
      ranges_.begin(), ranges_.end(), [key](const Range& range) { return range.Covers(key); });
  return erased ? &kErased : nullptr;
}

void Unflushed::Append(Unflushed&& later) {
  for (Range& range : later.ranges_) {
    EraseRange(std::move(range));
  }
  for (auto& [key, entry] : later.entries_) {
    entries_.insert_or_assign(key, std::move(entry));
  }
}

}  // namespace adamant::storage
