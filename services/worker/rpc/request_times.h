#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "services/common/base/clock.h"
#include "services/common/metrics/metrics.h"

namespace adamant::worker {

/// Times at which requests were sent whose replies have not come.
/// Threads: one at a time.
class RequestTimes {
 public:
  /// Replies to what was sent on streams that broke never come.
  static constexpr std::chrono::minutes kTimeout{1};

  explicit RequestTimes(const Clock& clock) : clock_(clock) {}  // must outlive this

  void OnSent(std::uint64_t request) { sent_[request] = clock_.Now(); }

  /// Adds how long the reply that has come took to `seconds`; nothing if the request is not known.
  void OnReply(std::uint64_t request, const metrics::Histogram& seconds) {
    if (const auto node = sent_.extract(request); !node.empty()) {
      seconds.Observe(std::chrono::duration<double>(clock_.Now() - node.mapped()).count());
    }
  }

  /// Forgets the requests that no reply will come to.
  void ForgetOld() {
    std::erase_if(sent_, [&](const auto& entry) { return clock_.Now() - entry.second > kTimeout; });
  }

 private:
  const Clock& clock_;
  std::map<std::uint64_t, Clock::TimePoint> sent_;
};

}  // namespace adamant::worker
