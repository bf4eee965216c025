#pragma once

#include <cstddef>
#include <cstdint>

#include "services/worker/core/learner/learner.h"

namespace adamant::worker {

/// A renewal: the training threads drop what accrues and wait, until the values of now have
/// replaced whatever the worker had. The first is under way from the start. Threads: one at a time,
/// beside the training threads.
class Renewal {
 public:
  explicit Renewal(Learner& learner) : learner_(learner) {}  // must outlive this

  /// Returns whether one is under way.
  [[nodiscard]] bool active() const { return active_; }

  /// Asks the threads to wait; the caller rings Learner::notifier.
  void Start() {
    active_ = true;
    waiting_ = 0;
    learner_.commands().RequestReset();
  }

  /// A thread waits, in answer to this Commands::reset_wanted.
  void OnReset(std::uint64_t generation) {
    waiting_ += generation == learner_.commands().reset_wanted() ? 1 : 0;
  }

  /// Returns whether all threads wait, and what they had handed over has been taken.
  [[nodiscard]] bool AllWait() const { return waiting_ >= learner_.threads(); }

  /// Lets the threads go on; the caller rings Learner::notifier.
  void Finish() {
    active_ = false;
    learner_.EndReset();
  }

 private:
  Learner& learner_;
  bool active_ = true;
  std::size_t waiting_ = 0;  // threads
};

}  // namespace adamant::worker
