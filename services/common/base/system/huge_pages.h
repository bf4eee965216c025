#pragma once

#include <cstddef>

namespace adamant {

/// Asks the system to put the huge pages that fit into this memory under it, so that fewer
/// addresses have to be translated. Call it before anybody touches the memory. Without effect where
/// the system does not allow it (/sys/kernel/mm/transparent_hugepage/enabled).
void PreferHugePages(void* memory, std::size_t bytes);

}  // namespace adamant
