#include "operator/kube_client/api/event_correlator.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace adamant::kube {
namespace {

// Makes room for one more.
template <class Map>
void DropOldest(Map& map, const auto& last_of) {
  if (map.size() < EventCorrelator::kMaxEntries) {
    return;
  }
  map.erase(std::min_element(map.begin(), map.end(), [&last_of](const auto& a, const auto& b) {
    return last_of(a.second) < last_of(b.second);
  }));
}

std::string Hex(std::uint64_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

std::optional<EventCorrelator::Entry> EventCorrelator::Observe(const Event& event) {
  const Clock::TimePoint now = clock_.Now();
  const auto wall = clock_.WallNow();
  const auto known = series_.find(event);
  const bool again = known != series_.end() && now - known->second.last < kWindow;
  Event kind = event;
  if (!again) {
    kind.message.clear();
  }
  if (!Allowed(kind)) {
    return std::nullopt;
  }
  if (again) {
    Series& series = known->second;
    series.last = now;
    series.entry.last = wall;
    ++series.entry.count;
    return series.entry;
  }
  if (known == series_.end()) {
    DropOldest(series_, [](const Series& series) { return series.last; });
  }
  // No two events have one name: not of this process, and hardly of another.
  const auto nanos = std::chrono::nanoseconds(wall.time_since_epoch()).count();
  const std::string name =
      event.object.key.name + "." + Hex(static_cast<std::uint64_t>(nanos)) + "." + Hex(named_++);
  const std::string& ns = event.object.key.ns;
  Entry entry{
      .event = event, .name = {ns.empty() ? "default" : ns, name}, .first = wall, .last = wall};
  series_.insert_or_assign(event, Series{entry, now});
  return entry;
}

bool EventCorrelator::Allowed(const Event& kind) {
  auto found = buckets_.find(kind);
  if (found == buckets_.end()) {
    DropOldest(buckets_, [](const auto& bucket) { return bucket->last; });
    found = buckets_.emplace(kind, std::make_unique<Bucket>(kRate, kBurst, clock_)).first;
  }
  found->second->last = clock_.Now();
  return found->second->limiter.TryTake();
}

}  // namespace adamant::kube
