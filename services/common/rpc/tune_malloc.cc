#include "services/common/rpc/tune_malloc.h"

#include <malloc.h>

namespace adamant::rpc {

void TuneMalloc() {
#ifdef __GLIBC__
  constexpr int kThresholdBytes = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kThresholdBytes);
  mallopt(M_MMAP_THRESHOLD, kThresholdBytes);
#endif
}

}  // namespace adamant::rpc
