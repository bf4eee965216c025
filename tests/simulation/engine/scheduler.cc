#include "tests/simulation/engine/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace adamant::simulation {
namespace {

bool Later(const auto& a, const auto& b) {
  return a.time != b.time ? a.time > b.time : a.order > b.order;
}

}  // namespace

void Scheduler::At(TimePoint time, LifePtr life, std::function<void()> action) {
  Push({std::max(time, now_), next_order_++, std::move(life), std::move(action)});
}

void Scheduler::Push(Event event) {
  events_.push_back(std::move(event));
  std::push_heap(events_.begin(), events_.end(), Later<Event, Event>);
}

bool Scheduler::RunNext() {
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end(), Later<Event, Event>);
    Event event = std::move(events_.back());
    events_.pop_back();
    if (event.life != nullptr && event.life->ended) {
      continue;
    }
    if (event.life != nullptr && event.life->paused_until > event.time) {
      event.time = event.life->paused_until;  // in the old order among those put off
      Push(std::move(event));
      continue;
    }
    now_ = event.time;
    running_ = event.life;
    ++executed_;
    event.action();
    return true;
  }
  return false;
}

Clock::Duration Scheduler::Random(Duration low, Duration high) {
  const auto span = static_cast<std::uint64_t>((high - low).count());
  return low + Duration(static_cast<Duration::rep>(rng_.Below(span + 1)));
}

std::uint64_t Scheduler::Between(std::uint64_t low, std::uint64_t high) {
  return low + rng_.Below(high - low + 1);
}

void Scheduler::Record(std::string_view who,
                       std::string_view what,
                       std::uint64_t a,
                       std::uint64_t b) {
  const auto text = [](std::string_view letters) {
    std::uint64_t mixed = letters.size();
    for (const char letter : letters) {
      mixed = mixed * 0x100000001b3ULL + static_cast<unsigned char>(letter);
    }
    return mixed;
  };
  hash_ = MixSeed(hash_, now_.time_since_epoch().count(), text(who), text(what), a, b);
  if (history_.size() == kRemembered) {
    history_.pop_front();
  }
  history_.push_back({now_, std::string(who), std::string(what), a, b});
}

std::string Scheduler::LastEvents() const {
  std::string lines;
  for (const Happening& each : history_) {
    const std::chrono::duration<double> time = each.time.time_since_epoch();
    char line[256];
    std::snprintf(line,
                  sizeof(line),
                  "  %12.6f s  %-28s %s %llu %llu\n",
                  time.count() - 3600,
                  each.who.c_str(),
                  each.what.c_str(),
                  static_cast<unsigned long long>(each.a),
                  static_cast<unsigned long long>(each.b));
    lines += line;
  }
  return lines;
}

}  // namespace adamant::simulation
