#pragma once

#include <chrono>
#include <cstdint>

namespace adamant::kube {

/// Speed and stubbornness with which a client sends its requests.
struct ClientOptions {
  double rate = 50;  ///< requests a second, watches included
  double burst = 100;
  int max_retries = 5;
  std::chrono::milliseconds max_retry_after{15'000};  ///< a longer Retry-After is not waited for
  std::chrono::milliseconds timeout{30'000};          ///< of a request
  std::uint64_t seed = 1;                             ///< of the jitter in waiting times
};

}  // namespace adamant::kube
