#pragma once

#include <cstdint>

namespace adamant::worker {

/// While it lives, calls of operator new by this thread are counted. Replaces operator new in every
/// program that is linked with it.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;

  /// By all threads so far.
  static std::uint64_t total();
};

}  // namespace adamant::worker
