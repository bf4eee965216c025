#include "services/common/base/system/room.h"

#include <sys/mman.h>

namespace adamant {

// As malloc asks for what is large.
bool HasRoomFor(std::size_t bytes) {
  void* const room =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    return false;
  }
  munmap(room, bytes);
  return true;
}

}  // namespace adamant
