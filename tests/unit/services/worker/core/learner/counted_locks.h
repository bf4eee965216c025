#pragma once

#include <cstdint>

namespace adamant::worker {

/// While it lives, this thread's calls of pthread mutexes and reader-writer locks (std::mutex among
/// them) are counted. Replaces these functions in every program that is linked with it.
class CountLocks {
 public:
  CountLocks();
  ~CountLocks();
  CountLocks(const CountLocks&) = delete;
  CountLocks& operator=(const CountLocks&) = delete;

  /// By this thread so far.
  static std::uint64_t total();
};

}  // namespace adamant::worker
