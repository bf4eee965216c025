#pragma once

#include <atomic>
#include <cstdint>

namespace adamant::worker {

/// The steps of all training threads, and after which of them a fetch point is met: by the thread
/// that took the step, which applies what was fetched and asks for the next fetch. Points are
/// dispatched with in their order. Threads: any; Drop while all training threads wait. Lock-free.
class FetchPoints {
 public:
  /// `first`: steps to the first point; 0: there is none, ever.
  explicit FetchPoints(std::uint64_t first) : next_(first) {}

  [[nodiscard]] std::uint64_t steps() const { return steps_.load(); }

  /// A step was taken. Returns the point that is met with it, from 1; 0: none. `interval` is called
  /// for the steps to the next one.
  template <class Interval>
  std::uint64_t OnStep(const Interval& interval) {
    const std::uint64_t step = steps_.fetch_add(1, std::memory_order_relaxed) + 1;
    std::uint64_t next = next_.load(std::memory_order_relaxed);
    if (next > 0 && step >= next &&
        next_.compare_exchange_strong(next, next + interval(), std::memory_order_relaxed)) {
      return points_.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return 0;
  }

  /// Returns whether all points before this one are dealt with.
  [[nodiscard]] bool IsTurn(std::uint64_t point) const {
    return turn_.load(std::memory_order_acquire) == point - 1;
  }

  /// This point is dealt with.
  void Pass(std::uint64_t point) { turn_.store(point, std::memory_order_release); }

  /// All points that were met are dealt with.
  void Drop() { Pass(points_.load()); }

 private:
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> next_;       // steps at which the next point is met; 0: never
  std::atomic<std::uint64_t> points_{0};  // met
  std::atomic<std::uint64_t> turn_{0};    // dealt with
};

}  // namespace adamant::worker
