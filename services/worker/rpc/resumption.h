#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace adamant::worker {

/// Time at which updates were first acknowledged after a connection to a parameter server was lost,
/// or who holds what had changed: the end of what a fault of theirs has cost this worker.
/// Threads: one.
class Resumption {
 public:
  using WallTime = std::chrono::system_clock::time_point;

  /// `acknowledged`: pushes, in all, by now.
  void OnDisturbed(std::uint64_t acknowledged) {
    if (!since_) {
      since_ = acknowledged;
    }
  }

  /// The same, after whatever may have changed it.
  void Look(std::uint64_t acknowledged, WallTime now) {
    if (since_ && acknowledged > *since_) {
      since_.reset();
      at_ = now;
    }
  }

  /// In seconds since 1970; 0: it was never disturbed, or still is for the first time.
  [[nodiscard]] double timestamp() const {
    return std::chrono::duration<double>(at_.time_since_epoch()).count();
  }

 private:
  std::optional<std::uint64_t> since_;  // pushes that were acknowledged before; none: undisturbed
  WallTime at_{};
};

}  // namespace adamant::worker
