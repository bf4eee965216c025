#pragma once

#include <cstddef>

namespace adamant {

/// Returns whether the process could get so many bytes of memory now, by its limits and the
/// system's. Gives them back. Threads: any.
bool HasRoomFor(std::size_t bytes);

}  // namespace adamant
