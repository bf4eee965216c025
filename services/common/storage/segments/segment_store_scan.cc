// SegmentStore::Scan: what is in memory laid over the records, in the order of the keys.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "services/common/base/status_macros.h"
#include "services/common/storage/segments/segment_records.h"
#include "services/common/storage/segments/segment_store.h"

namespace adamant::storage {

struct SegmentStore::Overlay {
  std::map<std::string, Unflushed::Outcome, std::less<>> outcomes;  ///< not yet shown
  std::vector<Unflushed::Range> erased;
  std::uint64_t commits = 0;

  void Erase(const Unflushed::Range& range) {
    outcomes.erase(outcomes.lower_bound(range.begin), outcomes.lower_bound(range.end));
    erased.push_back(range);
  }
  [[nodiscard]] bool Hides(std::string_view key) const {
    return std::any_of(erased.begin(), erased.end(), [key](const Unflushed::Range& range) {
      return range.Covers(key);
    });
  }
};

absl::Status SegmentStore::Scan(std::string_view prefix, const Visit& visit) const {
  for (;;) {
    Overlay overlay = OverlayOf(prefix);
    // Once the first record comes, or none, the records stand still: were they those that the
    // overlay was made for?
    bool checked = false;
    bool fits = true;
    bool go_on = true;
    absl::Status status;
    const auto check = [&] {
      fits = checked ? fits : Find("").commits == overlay.commits;
      checked = true;
      return fits;
    };
    const auto show = [&](std::optional<std::string_view> end) {
      absl::StatusOr<bool> shown = Show(overlay, end, visit);
      status = shown.status();
      go_on = shown.ok() && *shown;
      return go_on;
    };
    ADAMANT_RETURN_IF_ERROR(records_->Scan(
        kValue + std::string(prefix), [&](std::string_view record_key, std::string_view value) {
          const std::string_view key = record_key.substr(1);
          if (!check() || !show(key)) {
            return false;
          }
          if (const auto newer = overlay.outcomes.find(key); newer != overlay.outcomes.end()) {
            return true;  // comes with the next
          }
          go_on = overlay.Hides(key) || visit(key, value);
          return go_on;
        }));
    if (!check()) {
      continue;
    }
    if (go_on) {
      show(std::nullopt);
    }
    return status;
  }
}

// The keys with a changed or a large value.
SegmentStore::Overlay SegmentStore::OverlayOf(std::string_view prefix) const {
  Overlay overlay;
  const auto add = [&](const auto& map, const auto& outcome_of) {
    for (auto at = map.lower_bound(prefix); at != map.end() && at->first.starts_with(prefix);
         ++at) {
      overlay.outcomes.insert_or_assign(at->first, outcome_of(at->second));
    }
  };
  MutexLock lock(mutex_);
  overlay.commits = commits_;
  add(places_, [](const Location& place) { return place; });
  for (const Unflushed* changes : {&flushing_, &unflushed_}) {
    for (const Unflushed::Range& range : changes->ranges()) {
      overlay.Erase(range);
    }
    add(changes->entries(), [](const Unflushed::Entry& entry) { return entry.outcome; });
  }
  return overlay;
}

// Visits what comes before `end` (all that is left without `end`), and takes it from the
// overlay. False: `visit` has had enough.
absl::StatusOr<bool> SegmentStore::Show(Overlay& overlay,
                                        std::optional<std::string_view> end,
                                        const Visit& visit) const {
  auto& outcomes = overlay.outcomes;
  while (!outcomes.empty() && (!end.has_value() || outcomes.begin()->first < *end)) {
    const auto next = outcomes.extract(outcomes.begin());
    if (const auto* value = std::get_if<std::string>(&next.mapped())) {
      if (!visit(next.key(), *value)) {
        return false;
      }
    } else if (std::holds_alternative<Location>(next.mapped())) {
      const absl::StatusOr<std::string> read = Get(next.key());
      if (!read.ok() && !absl::IsNotFound(read.status())) {
        return read.status();
      }
      if (read.ok() && !visit(next.key(), *read)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace adamant::storage
