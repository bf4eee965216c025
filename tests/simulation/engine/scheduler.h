#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/rng.h"

namespace adamant::simulation {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A process as far as time is concerned: what was planned for it is dropped once it has ended, and
/// put off while it is paused.
struct Life {
  std::string name;
  bool ended = false;
  Clock::TimePoint paused_until{};
  Clock::TimePoint sends_from{};  ///< what it sends before sits there until then
};
using LifePtr = std::shared_ptr<Life>;

/// The one thread of the simulation: virtual time, the events to come in order of their time, and
/// all chance. Everything that happens is a function of the seed.
/// Threads: one.
class Scheduler final : public Clock {
 public:
  explicit Scheduler(std::uint64_t seed) : rng_(seed) {}

  [[nodiscard]] TimePoint Now() const override { return now_; }
  [[nodiscard]] std::chrono::system_clock::time_point WallNow() const override { return {}; }

  /// Plans `action` for a process; `life` null: for the world around them.
  void At(TimePoint time, LifePtr life, std::function<void()> action);
  void After(Duration delay, LifePtr life, std::function<void()> action) {
    At(now_ + delay, std::move(life), std::move(action));
  }

  /// Runs the next event; false if there is none.
  bool RunNext();

  /// The process whose event runs, or ran last; null: the world's.
  [[nodiscard]] const LifePtr& running() const { return running_; }

  /// What a checker runs of its own, in the midst of an event, is nobody's step.
  void AsNobody(const std::function<void()>& look) {
    const LifePtr running = std::exchange(running_, nullptr);
    look();
    running_ = running;
  }

  [[nodiscard]] std::size_t pending() const { return events_.size(); }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }

  // --- Chance

  Rng& rng() { return rng_; }
  bool Chance(double probability) { return rng_.Uniform() < probability; }
  Duration Random(Duration low, Duration high);
  std::uint64_t Between(std::uint64_t low, std::uint64_t high);  ///< both included

  // --- What happened

  /// Adds to the history: `who` did `what`; the numbers say which.
  void Record(std::string_view who,
              std::string_view what,
              std::uint64_t a = 0,
              std::uint64_t b = 0);

  /// Of the whole history, times included.
  [[nodiscard]] std::uint64_t hash() const { return hash_; }

  /// The end of the history, a line each.
  [[nodiscard]] std::string LastEvents() const;

 private:
  static constexpr std::size_t kRemembered = 200;

  struct Event {
    TimePoint time;
    std::uint64_t order = 0;
    LifePtr life;
    std::function<void()> action;
  };
  struct Happening {
    TimePoint time;
    std::string who;
    std::string what;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
  };

  void Push(Event event);

  Rng rng_;
  TimePoint now_{std::chrono::hours(1)};
  std::vector<Event> events_;  // a heap
  LifePtr running_;
  std::uint64_t next_order_ = 0;
  std::uint64_t executed_ = 0;
  std::uint64_t hash_ = 0;
  std::deque<Happening> history_;
};

}  // namespace adamant::simulation
