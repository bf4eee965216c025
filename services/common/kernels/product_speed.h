#pragma once

namespace adamant::kernels {

/// Floating-point operations per second of a single-precision product of two 1024 x 1024 matrices
/// on one thread: the best of several, by that thread's processor time. What a core can do at most,
/// near enough. Takes about 0.1 s.
double ProductSpeed();

}  // namespace adamant::kernels
