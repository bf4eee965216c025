#pragma once

#include <chrono>

#include "services/common/base/rng.h"

namespace adamant {

/// Bounds of a Backoff.
struct BackoffOptions {
  std::chrono::milliseconds initial{50};
  std::chrono::milliseconds max{5000};
};

/// Waiting times between retries: each is drawn between `initial` and three times the last, at most
/// `max`
/// ("decorrelated jitter"), so that clients that failed together do not return together.
/// Threads: one thread at a time.
class Backoff {
 public:
  Backoff(BackoffOptions options, std::uint64_t seed);

  /// The time to wait before the next try.
  std::chrono::milliseconds Next();

  /// Starts over, after a success.
  void Reset() { last_ = options_.initial; }

 private:
  const BackoffOptions options_;
  Rng rng_;
  std::chrono::milliseconds last_;
};

}  // namespace adamant
