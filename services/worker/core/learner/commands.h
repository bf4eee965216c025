#pragma once

#include <atomic>
#include <cstdint>

namespace adamant::worker {

/// Requests of the exchange loop to the training threads. Each thread answers with a ThreadEvent
/// that repeats the number of what it answers. The loop rings the threads' notifier after a change.
/// Threads: as named. Lock-free.
class Commands {
 public:
  // --- The exchange loop

  /// Threads drop what accrues and wait. The first is under way from the start.
  void RequestReset() { reset_wanted_.fetch_add(1, std::memory_order_release); }

  /// Threads that wait after a reset go on.
  void EndReset() { renewed_.store(reset_wanted_.load(), std::memory_order_release); }

  /// Threads hand over what accrues.
  void RequestFlush() { flush_wanted_.fetch_add(1, std::memory_order_release); }

  /// Threads hand over what accrues, and end.
  void Stop() { stopping_.store(true, std::memory_order_release); }

  // --- Training threads

  /// Numbers the last reset that was asked for, the last after which training may go on, and the
  /// last flush.
  [[nodiscard]] std::uint64_t reset_wanted() const {
    return reset_wanted_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t renewed() const { return renewed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t flush_wanted() const {
    return flush_wanted_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool stopping() const { return stopping_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> reset_wanted_{1};
  std::atomic<std::uint64_t> renewed_{0};
  std::atomic<std::uint64_t> flush_wanted_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace adamant::worker
