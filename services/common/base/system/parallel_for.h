#pragma once

#include <cstddef>
#include <functional>

namespace adamant {

/// Calls body(0) … body(count - 1), each once and perhaps several at the same time, and returns
/// when all have returned.
using ParallelFor =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

/// One after another, on the calling thread.
void OneByOne(std::size_t count, const std::function<void(std::size_t)>& body);

/// On up to `threads` threads, the calling one among them.
ParallelFor OnThreads(std::size_t threads);

}  // namespace adamant
