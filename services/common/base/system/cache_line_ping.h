#pragma once

#include <optional>

namespace adamant {

/// Nanoseconds that a cache line takes from one of two cores to the other, as the system places two
/// threads now: half the time of there and back, the median of many. Takes 2 ms, 10 ms where others
/// use the cores. nullopt when the process may use only one CPU, or the two threads never ran at
/// the same time. Threads: any; starts one of its own meanwhile.
std::optional<double> CacheLinePing();

}  // namespace adamant
