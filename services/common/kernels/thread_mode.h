#pragma once

namespace adamant::kernels {

/// While it lives, this thread computes alone and flushes denormal numbers to zero.
///
/// oneDNN would start a team of OpenMP threads per calling thread; our threads train side by side,
/// so each call must stay on its own. Denormals cost up to a hundred times a normal operation and
/// are far below the noise of a gradient.
class ThreadMode {
 public:
  ThreadMode();
  ~ThreadMode();
  ThreadMode(const ThreadMode&) = delete;
  ThreadMode& operator=(const ThreadMode&) = delete;

 private:
  int team_;
  unsigned float_mode_;
};

}  // namespace adamant::kernels
