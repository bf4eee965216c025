#pragma once

// What Highway builds our kernels for. Include before any header of Highway.
//
// x86-64: AVX-512 (F, BW, CD, DQ, VL: Highway's AVX3), AVX2 with FMA, SSE4, and plain code for what
// is older; SSSE3 would differ from SSE4 for nobody, AVX3_DL in no instruction that is used here.
// Arm: NEON; the kernels keep arrays of vectors, which SVE's sizeless types forbid.
// NOLINTNEXTLINE(readability-identifier-naming)
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
