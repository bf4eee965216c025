#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "services/common/kernels/kernel.h"

namespace adamant::kernels {

/// Makes the kernels of one training thread and holds what they share (engine, scratch memory).
/// Kernels must not outlive it. Threads: it and its kernels are used by one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Microseconds that a step of the layer takes on a nominal core; nullopt if there is no kernel
  /// for the layout. Decides between layouts, so that only ratios matter, and the same shapes get
  /// the same kernels in every process.
  [[nodiscard]] virtual std::optional<double> Cost(const Spec& spec) const = 0;

  /// The kernel for a spec that has a Cost. Errors: Internal when a library refuses a shape. Throws
  /// std::bad_alloc where there is no memory for it, or for code that the library generates.
  virtual absl::StatusOr<std::unique_ptr<Kernel<float>>> Make(const Spec& spec) = 0;
};

/// Plain loops, for tests and for machines the other does not know.
std::unique_ptr<Backend> MakeReferenceBackend();

/// oneDNN where it has the layer, the reference elsewhere. Errors: Internal when oneDNN does not
/// start.
absl::StatusOr<std::unique_ptr<Backend>> MakeOneDnnBackend();

}  // namespace adamant::kernels
