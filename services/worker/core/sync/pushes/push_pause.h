#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "services/common/base/clock.h"

namespace adamant::worker {

/// A checkpoint for which no push starts. Ends by itself when the controller says nothing more for
/// a while: it may have died. Threads: one at a time.
class PushPause {
 public:
  /// A third more than the controller's attempt may take (CheckpointTaker), by its clock.
  static constexpr std::chrono::seconds kTimeout{40};

  /// Pushes pause for this checkpoint, and for none before it. May be repeated: the answer is
  /// then due again.
  void Begin(std::uint64_t checkpoint, Clock::TimePoint now) {
    if (checkpoint_.has_value() && checkpoint < *checkpoint_) {
      return;
    }
    if (!checkpoint_.has_value()) {
      since_ = now;
    }
    checkpoint_ = checkpoint;
    until_ = now + kTimeout;
    answered_ = false;
  }

  /// This checkpoint, and all before it, need no pause any more.
  void Resume(std::uint64_t checkpoint) {
    if (checkpoint_.has_value() && checkpoint >= *checkpoint_) {
      ResumeAny();
    }
  }

  void ResumeAny() { until_ = Clock::TimePoint::min(); }

  /// Lets time pass.
  void Advance(Clock::TimePoint now) {
    if (checkpoint_.has_value() && now >= until_) {
      paused_ += now - since_;
      checkpoint_.reset();
    }
  }

  [[nodiscard]] bool active() const { return checkpoint_.has_value(); }

  /// Returns whether the answer is due.
  [[nodiscard]] bool due() const { return checkpoint_.has_value() && !answered_; }

  /// The checkpoint whose answer is due; to be taken when everything is at rest.
  std::optional<std::uint64_t> TakeDue() {
    if (!due()) {
      return std::nullopt;
    }
    answered_ = true;
    return checkpoint_;
  }

  /// Returns when Advance is due; nullopt: not before another call.
  [[nodiscard]] std::optional<Clock::TimePoint> NextAdvance() const {
    return checkpoint_.has_value() ? std::optional(until_) : std::nullopt;
  }

  /// Returns how long pushes were paused, all ended pauses together.
  [[nodiscard]] Clock::Duration paused() const { return paused_; }

 private:
  std::optional<std::uint64_t> checkpoint_;
  Clock::TimePoint since_{};
  Clock::TimePoint until_{};
  bool answered_ = false;
  Clock::Duration paused_{};
};

}  // namespace adamant::worker
