#include "services/common/base/system/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace adamant {
namespace {

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;  // of x86, and of Arm's 4 kB pages

}  // namespace

void PreferHugePages(void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (begin < end) {
    // A wish, which may fail.
    madvise(static_cast<char*>(memory) + (begin - address), end - begin, MADV_HUGEPAGE);
  }
}

}  // namespace adamant
