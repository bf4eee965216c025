#pragma once

#include <memory>

#include "services/common/kernels/kernel.h"

namespace adamant::kernels {

/// The reference kernel of any layer: loops as in the textbook. T is float or double (for finite
/// differences). Convolutions and pools need spec.layout == kChannelsFirst, all others take both.
template <class T>
std::unique_ptr<Kernel<T>> MakeReferenceKernel(const Spec& spec);

namespace internal {

// One factory per source file; MakeReferenceKernel picks.
template <class T>
std::unique_ptr<Kernel<T>> MakeConv2d(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakePool(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeFullyConnected(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeElementwise(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeDropout(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeFlatten(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeAdd(const Spec& spec);
template <class T>
std::unique_ptr<Kernel<T>> MakeConcat(const Spec& spec);

}  // namespace internal
}  // namespace adamant::kernels
