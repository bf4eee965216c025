#include "services/common/base/system/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace adamant {

void OneByOne(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < count; ++i) {
    body(i);
  }
}

ParallelFor OnThreads(std::size_t threads) {
  return [threads](std::size_t count, const std::function<void(std::size_t)>& body) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < count; i = next++) {
        body(i);
      }
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(threads, count); ++i) {
      helpers.emplace_back(work);
    }
    work();
  };
}

}  // namespace adamant
