#pragma once

#include <algorithm>
#include <chrono>

#include "absl/status/status.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Keeps a job from waiting for an API that is away: after a request that it did not answer the
/// next one is not tried before a time that doubles from failure to failure, from 0.2 s to 5 s. So
/// one that takes connections and is silent costs little of the time of who leads the job. Threads:
/// one.
class ApiPause {
 public:
  /// OK when a request may be tried; else what the last one ended with.
  [[nodiscard]] absl::Status Check(Clock::TimePoint now) const {
    return now < until_ ? last_ : absl::OkStatus();
  }

  /// Takes what a request has ended with. All but Unavailable and DeadlineExceeded are answers.
  void Note(const absl::Status& status, Clock::TimePoint now) {
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
      wait_ = kFirst;
      return;
    }
    last_ = status;
    until_ = now + wait_;
    wait_ = std::min(2 * wait_, kLongest);
  }

 private:
  static constexpr std::chrono::milliseconds kFirst{200};
  static constexpr std::chrono::milliseconds kLongest{5'000};

  absl::Status last_;
  Clock::TimePoint until_ = Clock::TimePoint::min();
  std::chrono::milliseconds wait_ = kFirst;
};

}  // namespace adamant::kube
