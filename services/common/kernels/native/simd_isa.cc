#include "services/common/kernels/native/simd_isa.h"

#include "services/common/kernels/native/simd/simd_targets.h"

// After what they build for.
#include <hwy/highway.h>

namespace adamant::kernels {
namespace {

// Highway's, as bits.
std::int64_t TargetsOf(SimdIsa isa) {
  switch (isa) {
    case SimdIsa::kAvx512:
      return HWY_AVX3;
    case SimdIsa::kAvx2:
      return HWY_AVX2;
    case SimdIsa::kSse4:
      return HWY_SSE4;
    case SimdIsa::kNeon:
      return HWY_NEON;
    case SimdIsa::kPlain:
      return HWY_SCALAR | HWY_EMU128;
  }
  return 0;
}

}  // namespace

bool IsSupported(SimdIsa isa) {
  // The plain ones need nothing, so that they are always there.
  const std::int64_t supported = hwy::SupportedTargets() | TargetsOf(SimdIsa::kPlain);
  return (TargetsOf(isa) & supported & std::int64_t{HWY_TARGETS}) != 0;
}

void LimitSimd(SimdIsa best) {
  std::int64_t better = 0;
  for (auto isa = SimdIsa::kAvx512; isa != best;
       isa = static_cast<SimdIsa>(static_cast<int>(isa) + 1)) {
    better |= TargetsOf(isa);
  }
  hwy::DisableTargets(better);
}

void SetSimd(std::optional<SimdIsa> isa) {
  hwy::SetSupportedTargetsForTest(isa ? TargetsOf(*isa) : 0);
}

}  // namespace adamant::kernels
