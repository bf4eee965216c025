#include "services/common/storage/segments/value_index.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <variant>

#include "services/common/storage/segments/segment_records.h"

namespace adamant::storage {
namespace {

// Those to be emptied: see ValueIndex::ValuesToMove.
std::set<std::uint64_t> SparseSegments(const ValueIndex::SegmentBytes& used,
                                       const ValueIndex::SegmentBytes& all,
                                       std::uint64_t open,
                                       std::uint64_t segment_bytes) {
  std::uint64_t in_use = 0;
  std::uint64_t space = 0;  // without segments that will be free anyway
  std::vector<std::pair<double, std::uint64_t>> by_share;  // of bytes in use
  for (const auto& [segment, bytes] : used) {
    const auto found = all.find(segment);
    if (found == all.end()) {
      continue;  // its file is missing
    }
    in_use += bytes;
    space += found->second;
    if (segment != open) {
      by_share.emplace_back(static_cast<double>(bytes) / static_cast<double>(found->second),
                            segment);
    }
  }
  std::sort(by_share.begin(), by_share.end());
  std::set<std::uint64_t> sparse;
  for (const auto& [share, segment] : by_share) {
    if (space <= 2 * in_use + 2 * segment_bytes) {
      break;
    }
    space -= all.at(segment) - std::min(all.at(segment), used.at(segment));
    sparse.insert(segment);
  }
  return sparse;
}

}  // namespace

void ValueIndex::Load(Places places) {
  MutexLock lock(mutex_);
  places_ = std::move(places);
}

ValueIndex::Found ValueIndex::Find(std::string_view key) const {
  MutexLock lock(mutex_);
  for (const Unflushed* changes : {&unflushed_, &flushing_}) {
    if (const Unflushed::Outcome* outcome = changes->Find(key); outcome != nullptr) {
      return {*outcome, commits_};
    }
  }
  const auto place = places_.find(key);
  return place == places_.end() ? Found{std::nullopt, commits_} : Found{place->second, commits_};
}

std::uint64_t ValueIndex::commits() const {
  MutexLock lock(mutex_);
  return commits_;
}

Overlay ValueIndex::OverlayOf(std::string_view prefix) const {
  MutexLock lock(mutex_);
  Overlay overlay(commits_);
  const auto add = [&](const auto& map, const auto& outcome_of) {
    for (auto at = map.lower_bound(prefix); at != map.end() && at->first.starts_with(prefix);
         ++at) {
      overlay.Set(at->first, outcome_of(at->second));
    }
  };
  add(places_, [](const Location& place) { return place; });
  for (const Unflushed* changes : {&flushing_, &unflushed_}) {
    for (const Unflushed::Range& range : changes->ranges()) {
      overlay.Erase(range);
    }
    add(changes->entries(), [](const Unflushed::Entry& entry) { return entry.outcome; });
  }
  return overlay;
}

void ValueIndex::Add(const std::vector<Change>& changes, std::vector<Unflushed::Outcome> outcomes) {
  MutexLock lock(mutex_);
  ++calls_;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (const auto* location = std::get_if<Location>(&outcomes[i])) {
      unflushed_bytes_ += location->bytes;
    }
    if (changes[i].end.empty()) {
      unflushed_.Set(changes[i].key, std::move(outcomes[i]), calls_);
    } else {
      unflushed_.EraseRange({changes[i].key, changes[i].end, calls_});
    }
  }
}

ValueIndex::RecordWrite ValueIndex::RecordsOf(const std::vector<Change>& changes) const {
  MutexLock lock(mutex_);
  RecordWrite write{.records = {}, .call = calls_};
  for (const Change& change : changes) {
    if (change.erase) {
      AppendErase(change.key, change.end, write.records);
    } else {
      AppendValue(change.key, change.value, places_.contains(change.key), write.records);
    }
  }
  return write;
}

void ValueIndex::ApplyWritten(const std::vector<Change>& changes, std::uint64_t call) {
  MutexLock lock(mutex_);
  ++commits_;
  for (const Change& change : changes) {
    ForgetOlder(change, call);
  }
}

void ValueIndex::ForgetOlder(const Change& change, std::uint64_t call) {
  if (change.end.empty()) {
    unflushed_.Forget(change.key, call);
    flushing_.Forget(change.key, call);
    places_.erase(change.key);
  } else if (change.key < change.end) {
    unflushed_.ForgetRange(change.key, change.end, call);
    flushing_.ForgetRange(change.key, change.end, call);
    places_.erase(places_.lower_bound(change.key), places_.lower_bound(change.end));
  }
}

void ValueIndex::BeginFlush() {
  MutexLock lock(mutex_);
  flushing_ = std::exchange(unflushed_, {});
}

void ValueIndex::UndoFlush() {
  MutexLock lock(mutex_);
  flushing_.Append(std::exchange(unflushed_, {}));
  unflushed_ = std::exchange(flushing_, {});
}

std::vector<Change> ValueIndex::RecordsToFlush() const {
  MutexLock lock(mutex_);
  std::vector<Change> records;
  for (const Unflushed::Range& range : flushing_.ranges()) {
    AppendErase(range.begin, range.end, records);
  }
  for (const auto& [key, entry] : flushing_.entries()) {
    if (const auto* place = std::get_if<Location>(&entry.outcome)) {
      AppendPlace(key, *place, records);
    } else if (const auto* value = std::get_if<std::string>(&entry.outcome)) {
      AppendValue(key, *value, places_.contains(key), records);
    } else {
      AppendErase(key, "", records);
    }
  }
  return records;
}

std::uint64_t ValueIndex::ApplyFlushed() {
  MutexLock lock(mutex_);
  const Unflushed flushed = std::exchange(flushing_, {});
  for (const Unflushed::Range& range : flushed.ranges()) {
    places_.erase(places_.lower_bound(range.begin), places_.lower_bound(range.end));
  }
  for (const auto& [key, entry] : flushed.entries()) {
    if (const auto* location = std::get_if<Location>(&entry.outcome)) {
      places_.insert_or_assign(key, *location);
    } else {
      places_.erase(key);
    }
  }
  ++commits_;
  return std::exchange(unflushed_bytes_, 0);
}

ValueIndex::SegmentBytes ValueIndex::UsedBytes() const {
  MutexLock lock(mutex_);
  return CountUsedBytes();
}

std::vector<std::pair<std::string, Location>> ValueIndex::ValuesToMove(
    const SegmentBytes& all, std::uint64_t open, std::uint64_t segment_bytes) const {
  MutexLock lock(mutex_);
  const std::set<std::uint64_t> sparse = SparseSegments(CountUsedBytes(), all, open, segment_bytes);
  std::vector<std::pair<std::string, Location>> result;
  for (const auto& [key, place] : places_) {
    if (sparse.contains(place.segment) && !IsUnflushed(key)) {
      result.emplace_back(key, place);
    }
  }
  return result;
}

ValueIndex::SegmentBytes ValueIndex::CountUsedBytes() const {
  SegmentBytes used;
  for (const auto& [key, place] : places_) {
    if (!IsUnflushed(key)) {
      used[place.segment] += place.bytes;
    }
  }
  for (const Unflushed* changes : {&flushing_, &unflushed_}) {
    for (const auto& [key, entry] : changes->entries()) {
      if (const auto* place = std::get_if<Location>(&entry.outcome)) {
        used[place->segment] += place->bytes;
      }
    }
  }
  return used;
}

bool ValueIndex::IsUnflushed(std::string_view key) const {
  return unflushed_.Find(key) != nullptr || flushing_.Find(key) != nullptr;
}

void ValueIndex::Move(const std::string& key, const Location& from, const Location& to) {
  MutexLock lock(mutex_);
  const auto place = places_.find(key);
  if (place != places_.end() && place->second == from && !IsUnflushed(key)) {
    flushing_.Set(key, to, 0);
  }
}

}  // namespace adamant::storage
