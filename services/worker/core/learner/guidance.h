#pragma once

#include <atomic>
#include <cstdint>

#include "services/common/optimiser/optimiser.h"

namespace adamant::worker {

/// Adjustments that the training threads of a worker are to make beside others (Asynchrony).
struct Guidance {
  Correction correction = {};
  float look_ahead = 0;              ///< LookAhead::factor of the fetch that came last
  std::uint64_t exchange_every = 1;  ///< batches of a thread between two pushes, and two fetches
  bool eager = false;                ///< fetched values are applied when they come

  friend bool operator==(const Guidance&, const Guidance&) = default;
};

/// Guidance from the exchange loop to the training threads: each number by itself.
/// Threads: Set one at a time, Get any. Lock-free.
class SharedGuidance {
 public:
  explicit SharedGuidance(std::uint64_t exchange_every) : exchange_every_(exchange_every) {}

  void Set(const Guidance& guidance) {
    rate_.store(guidance.correction.rate, std::memory_order_relaxed);
    memory_.store(guidance.correction.memory, std::memory_order_relaxed);
    look_ahead_.store(guidance.look_ahead, std::memory_order_relaxed);
    exchange_every_.store(guidance.exchange_every, std::memory_order_relaxed);
    eager_.store(guidance.eager, std::memory_order_release);
  }
  [[nodiscard]] Guidance Get() const {
    return {.correction = {.rate = rate_.load(std::memory_order_relaxed),
                           .memory = memory_.load(std::memory_order_relaxed)},
            .look_ahead = look_ahead_.load(std::memory_order_relaxed),
            .exchange_every = exchange_every_.load(std::memory_order_relaxed),
            .eager = eager_.load(std::memory_order_acquire)};
  }

 private:
  std::atomic<float> rate_{1};
  std::atomic<float> memory_{1};
  std::atomic<float> look_ahead_{0};
  std::atomic<std::uint64_t> exchange_every_;
  std::atomic<bool> eager_{false};
};

}  // namespace adamant::worker
