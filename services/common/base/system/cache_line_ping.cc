#include "services/common/base/system/cache_line_ping.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "services/common/base/system/thread_affinity.h"

namespace adamant {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kTripsPerSample = 16;
constexpr std::size_t kSamples = 400;
constexpr std::uint64_t kWarmUp = 64;  // trips
constexpr std::chrono::milliseconds kTimeout{10};

/// A trip there makes the number odd, the trip back even.
struct alignas(128) Ball {
  std::atomic<std::uint64_t> trips{0};
  std::atomic<bool> over{false};
};

/// False when the game is over before the ball has come.
bool Await(const Ball& ball, std::uint64_t trips) {
  while (ball.trips.load(std::memory_order_acquire) != trips) {
    if (ball.over.load(std::memory_order_relaxed)) {
      return false;
    }
  }
  return true;
}

void Return(Ball& ball) {
  for (std::uint64_t trip = 1; Await(ball, trip); trip += 2) {
    ball.trips.store(trip + 1, std::memory_order_release);
  }
}

/// False when the timeout ends first.
bool RoundTrips(Ball& ball, std::uint64_t count, SteadyClock::time_point end) {
  std::uint64_t trip = ball.trips.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < count; ++i, trip += 2) {
    ball.trips.store(trip + 1, std::memory_order_release);
    for (std::uint32_t spins = 1; ball.trips.load(std::memory_order_acquire) != trip + 2; ++spins) {
      if (spins % 1024 == 0 && SteadyClock::now() > end) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<double> CacheLinePing() {
  if (UsableCpus() < 2) {
    return std::nullopt;
  }
  Ball ball;
  std::jthread other([&ball] { Return(ball); });
  const SteadyClock::time_point end = SteadyClock::now() + kTimeout;
  std::vector<double> samples;
  samples.reserve(kSamples);
  bool playing = RoundTrips(ball, kWarmUp, end);
  while (playing && samples.size() < kSamples) {
    const SteadyClock::time_point begin = SteadyClock::now();
    playing = RoundTrips(ball, kTripsPerSample, end);
    const std::chrono::duration<double, std::nano> elapsed = SteadyClock::now() - begin;
    if (playing) {
      samples.push_back(elapsed.count() / (2 * kTripsPerSample));
    }
  }
  ball.over.store(true, std::memory_order_relaxed);
  if (samples.empty()) {
    return std::nullopt;
  }
  const auto median = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), median, samples.end());
  return *median;
}

}  // namespace adamant
