#include "tests/processes/commit_times.h"

#include <algorithm>

namespace adamant::processes {
namespace {

constexpr std::size_t kMaxLatencies = 1'000'000;

}  // namespace

void CommitTimes::OnAcknowledged(BucketId bucket, TimePoint begun, TimePoint now) {
  const auto [last, first] = last_.emplace(bucket, now);
  if (!first) {
    if (now - last->second >= shortest_gap_) {
      gaps_.push_back({.bucket = bucket, .from = last->second, .to = now});
    }
    last->second = now;
  }
  const auto latency = std::chrono::duration_cast<std::chrono::microseconds>(now - begun);
  if (latencies_.size() < kMaxLatencies) {
    latencies_.push_back(latency);
  } else {
    latencies_[next_latency_] = latency;
    next_latency_ = (next_latency_ + 1) % kMaxLatencies;
  }
}

std::chrono::microseconds CommitTimes::Quantile(double share) const {
  if (latencies_.empty()) {
    return {};
  }
  std::vector<std::chrono::microseconds> sorted = latencies_;
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
  const auto wanted = sorted.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(sorted.begin(), wanted, sorted.end());
  return *wanted;
}

}  // namespace adamant::processes
