#pragma once

#include <cstddef>
#include <functional>

namespace adamant::bench {

/// Runs `work(index)` on `threads` new threads at once and waits for all. Each is pinned to a CPU
/// of those that this process may use, in turns.
void RunPinned(std::size_t threads, const std::function<void(std::size_t index)>& work);

/// Processor time of this thread so far.
double ThreadSeconds();

}  // namespace adamant::bench
