// What the kernels of every target share. Included once per target: no #pragma once.
#if defined(ADAMANT_KERNELS_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ADAMANT_KERNELS_SIMD_INL_H
#undef ADAMANT_KERNELS_SIMD_INL_H
#else
#define ADAMANT_KERNELS_SIMD_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "services/common/kernels/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace adamant::kernels::internal::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A block's kLanes examples are kParts vectors of kVector examples.
using Floats = hn::CappedTag<float, kLanes>;
using Vector = hn::Vec<Floats>;
inline constexpr std::int64_t kVector = hn::MaxLanes(Floats());
inline constexpr std::int64_t kParts = kLanes / kVector;

/// Vector registers of the target, for accumulators and what they are computed from.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kRegisters = 32;
#else
inline constexpr int kRegisters = 16;
#endif

/// The even elements of `low`, then those of `high`; and the odd ones. Plain vectors have one
/// element: there is nothing to join.
template <class D>
HWY_INLINE hn::Vec<D> JoinEven(D d, hn::Vec<D> high, hn::Vec<D> low) {
#if HWY_TARGET == HWY_SCALAR
  return (void)d, (void)high, low;
#else
  return hn::ConcatEven(d, high, low);
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> JoinOdd(D d, hn::Vec<D> high, hn::Vec<D> low) {
#if HWY_TARGET == HWY_SCALAR
  return (void)d, (void)low, high;
#else
  return hn::ConcatOdd(d, high, low);
#endif
}

/// The first `count` elements at `from`, at most a vector; zeros behind. Touches no others.
HWY_INLINE Vector LoadFirst(std::int64_t count, const float* from) {
  const Floats d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#else
  if (count == kVector) {
    return hn::LoadU(d, from);
  }
  float padded[kVector] = {};
  std::copy_n(from, count, padded);
  return hn::LoadU(d, padded);
#endif
}

/// Stores the first `count` elements, and touches nothing behind them.
HWY_INLINE void StoreFirst(std::int64_t count, Vector values, float* to) {
  const Floats d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(values, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  if (count == kVector) {
    return hn::StoreU(values, d, to);
  }
  float padded[kVector];
  hn::StoreU(values, d, padded);
  std::copy_n(padded, count, to);
#endif
}

/// sums[i] becomes the sum over the lanes of vectors[i]. Each round halves the vectors, and the
/// lanes that belong to one sum. `sums` has room for whole vectors.
template <int N, int PerSum = kVector>
HWY_INLINE void SumLanes(const Vector* vectors, float* sums) {
  const Floats d;
  if constexpr (PerSum == 1) {
    for (std::int64_t i = 0; i < N; ++i) {
      hn::StoreU(vectors[i], d, sums + i * kVector);
    }
  } else {
    constexpr int kPairs = (N + 1) / 2;
    Vector halves[kPairs];
    HWY_UNROLL(16)
    for (std::int64_t i = 0; i < kPairs; ++i) {
      const Vector low = vectors[2 * i];
      const Vector high = 2 * i + 1 < N ? vectors[2 * i + 1] : hn::Zero(d);
      halves[i] = hn::Add(JoinEven(d, high, low), JoinOdd(d, high, low));
    }
    SumLanes<kPairs, PerSum / 2>(halves, sums);
  }
}

}  // namespace adamant::kernels::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
