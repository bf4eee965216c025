#include "tests/bench/machine.h"

#include <ctime>
#include <thread>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/system/thread_affinity.h"

namespace adamant::bench {

void RunPinned(std::size_t threads, const std::function<void(std::size_t index)>& work) {
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&work, i] {
      ADAMANT_CHECK(PinThread(i).ok(), "a thread may run on a CPU that it may run on");
      work(i);
    });
  }
}

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace adamant::bench
