#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/metrics/metrics.h"

namespace adamant::rpc {
struct Refusal;
}  // namespace adamant::rpc

namespace adamant::service {

/// Counts and logs the calls that a server with TLS refuses; of the log, one in a second.
/// Threads: any.
class Refusals {
 public:
  /// `registry` must outlive this.
  explicit Refusals(metrics::Registry& registry);

  void Add(const rpc::Refusal& refusal);

 private:
  static constexpr std::chrono::seconds kLogInterval{1};

  // By reason.
  using Counters = std::array<metrics::Counter, 2>;

  static Counters CountersOf(metrics::Registry& registry, std::string_view method);
  bool MayLog();

  // Constant after construction.
  const SystemClock clock_;
  std::map<std::string, Counters, std::less<>> known_;  // by method
  const Counters other_;

  Mutex mutex_;
  Clock::TimePoint log_from_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::service
