#pragma once

#include <cstddef>
#include <functional>
#include <vector>

// What a measurement says of the machine beside its own figure.
namespace adamant::bench {

/// The processors that this process may use, ascending.
std::vector<int> AllowedProcessors();

/// Runs `work(index)` on `threads` new threads at once and waits for all. Thread i is pinned to the
/// i-th of AllowedProcessors, around again where there are more threads.
void RunPinned(std::size_t threads, const std::function<void(std::size_t index)>& work);

/// Processor time of this thread so far.
double ThreadSeconds();

/// Floating-point operations per second of a 1024^3 single-precision dnnl_sgemm on one thread: the
/// best of several, by that thread's processor time.
double ProductSpeed();

/// Nanoseconds that a cache line takes from the first processor this process may use to the second:
/// half of the fastest round trip. Infinite where there is only one, or others keep it busy.
double CacheLinePing();

}  // namespace adamant::bench
