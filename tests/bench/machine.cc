#include "tests/bench/machine.h"

#include <oneapi/dnnl/dnnl.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <thread>

#include "services/common/base/check.h"
#include "services/common/kernels/thread_mode.h"

namespace adamant::bench {
namespace {

double BestProduct() {
  constexpr std::int64_t kSide = 1024;
  constexpr double kFlop = 2.0 * kSide * kSide * kSide;
  constexpr int kRepetitions = 8;
  const kernels::ThreadMode mode;
  const std::vector<float> a(kSide * kSide, 0.5f);
  const std::vector<float> b(kSide * kSide, 0.25f);
  std::vector<float> c(kSide * kSide);
  double best = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const double start = ThreadSeconds();
    dnnl_sgemm('N',
               'N',
               kSide,
               kSide,
               kSide,
               1.0f,
               a.data(),
               kSide,
               b.data(),
               kSide,
               0.0f,
               c.data(),
               kSide);
    best = std::max(best, kFlop / (ThreadSeconds() - start));
  }
  return best;
}

/// A ball that two threads pass to each other. Nobody waits longer than until `deadline`, so that a
/// thread that lost its processor holds nobody up.
class Ball {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Ball(Clock::time_point deadline) : deadline_(deadline) {}

  /// Waits for the ball to have been passed `count` times; false after the deadline.
  bool Await(int count) const {
    constexpr int kLooksPerClock = 1024;  // reading the clock takes as long as a pass
    for (int looks = 1; passes_.load(std::memory_order_acquire) != count; ++looks) {
      if (looks % kLooksPerClock == 0 && Clock::now() > deadline_) {
        return false;
      }
    }
    return true;
  }

  void Pass(int count) { passes_.store(count, std::memory_order_release); }

 private:
  const Clock::time_point deadline_;
  alignas(64) std::atomic<int> passes_{0};
};

}  // namespace

std::vector<int> AllowedProcessors() {
  cpu_set_t allowed;
  ADAMANT_CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "a set of up to 1024 fits");
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) {
      processors.push_back(i);
    }
  }
  return processors;
}

void RunPinned(std::size_t threads, const std::function<void(std::size_t index)>& work) {
  const std::vector<int> processors = AllowedProcessors();
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processors[i % processors.size()], &one);
      ADAMANT_CHECK(sched_setaffinity(0, sizeof(one), &one) == 0, "the processor is allowed");
      work(i);
    });
  }
}

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double ProductSpeed() {
  double speed = 0;
  RunPinned(1, [&](std::size_t /*index*/) { speed = BestProduct(); });
  return speed;
}

double CacheLinePing() {
  constexpr int kTripsPerRound = 200;
  constexpr int kRounds = 50;
  constexpr std::chrono::milliseconds kAtMost{200};
  double best = std::numeric_limits<double>::infinity();
  if (AllowedProcessors().size() < 2) {
    return best;
  }
  Ball ball(Ball::Clock::now() + kAtMost);
  RunPinned(2, [&](std::size_t index) {
    bool in_time = true;
    for (int round = 0; round < kRounds && in_time; ++round) {
      const auto start = Ball::Clock::now();
      for (int trip = 0; trip < kTripsPerRound && in_time; ++trip) {
        const int count = 2 * (round * kTripsPerRound + trip) + static_cast<int>(index);
        in_time = ball.Await(count);
        ball.Pass(count + 1);
      }
      const std::chrono::duration<double, std::nano> elapsed = Ball::Clock::now() - start;
      if (index == 0 && in_time) {
        best = std::min(best, elapsed.count() / (2 * kTripsPerRound));
      }
    }
  });
  return best;
}

}  // namespace adamant::bench
