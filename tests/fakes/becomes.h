#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace adamant::fakes {

/// Waits until `condition` holds, for twenty seconds at most. Returns whether it does.
inline bool Becomes(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

}  // namespace adamant::fakes
