#pragma once

#include <cstdint>
#include <optional>

// Which instruction sets native kernels are made for.
namespace adamant::kernels {

/// Best first. Which of them are built depends on the processor's family, and of the plain ones on
/// the compiler.
enum class SimdIsa : std::uint8_t { kAvx512, kAvx2, kSse4, kNeon, kPlain };

/// Returns whether `isa` is built, and this machine has and may use it; always so of the plain one.
bool IsSupported(SimdIsa isa);

/// Kernels that are made from now on use none that is better than `best`.
void LimitSimd(SimdIsa best);

/// Kernels that are made from now on use `isa`, until it is set again; nullopt: what is supported.
/// For tests and benchmarks.
void SetSimd(std::optional<SimdIsa> isa);

}  // namespace adamant::kernels
