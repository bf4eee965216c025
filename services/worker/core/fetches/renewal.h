#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "services/worker/core/replica.h"

namespace adamant::worker {

/// A renewal: the training threads drop what accrues and wait, until the values of now have
/// replaced whatever the worker had. The first is under way from the start. Threads: one at a time,
/// beside the training threads.
class Renewal {
 public:
  explicit Renewal(Replica& replica) : replica_(replica) {}  // must outlive this

  /// Whether one is under way.
  [[nodiscard]] bool active() const { return active_; }

  /// Asks the threads to wait; the caller rings Replica::bell.
  void Start() {
    active_ = true;
    waiting_ = 0;
    replica_.commands.reset_wanted.fetch_add(1, std::memory_order_release);
  }

  /// A thread waits, in answer to this Commands::reset_wanted.
  void OnReset(std::uint64_t generation) {
    waiting_ += generation == replica_.commands.reset_wanted.load() ? 1 : 0;
  }

  /// Whether all threads wait, and what they had handed over has been taken.
  [[nodiscard]] bool AllWait() const { return waiting_ >= replica_.ports.size(); }

  /// Lets the threads go on; the caller rings Replica::bell.
  void Finish() {
    active_ = false;
    replica_.fetch_turn.store(replica_.fetch_points.load(), std::memory_order_release);
    replica_.commands.renewed.store(replica_.commands.reset_wanted.load(),
                                    std::memory_order_release);
  }

 private:
  Replica& replica_;
  bool active_ = true;
  std::size_t waiting_ = 0;  // threads
};

}  // namespace adamant::worker
