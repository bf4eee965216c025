#pragma once

#include <functional>
#include <thread>

namespace adamant::service {

/// Turns SIGTERM and SIGINT into a call. The second signal, and a stop that takes longer than 20
/// seconds after the first, end the process at once with code 1.
/// Make it before any other thread, because threads inherit which signals they block; one per
/// process.
/// Threads: made and destroyed by one, the first; starts one, which waits for signals.
class StopSignals {
 public:
  /// `stop` is called on a thread of this object, at most once.
  explicit StopSignals(std::function<void()> stop);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  std::thread thread_;
};

/// Makes this process receive SIGTERM when its parent `pid` ends (more precisely, the parent's
/// thread that started it). False when the parent has ended already.
bool FollowParent(int pid);

}  // namespace adamant::service
