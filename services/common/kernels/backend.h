#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/kernels/kernel.h"

namespace adamant::kernels {

/// Makes the kernels of one training thread and holds what they share (engine, scratch memory).
/// Kernels must not outlive it. Threads: it and its kernels are used by one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The layout that its kernels work in.
  [[nodiscard]] virtual MapLayout layout() const = 0;

  /// The kernel for `spec`, whose layout must be layout(). Errors: Internal when a library refuses
  /// a shape.
  virtual absl::StatusOr<std::unique_ptr<Kernel<float>>> Make(const Spec& spec) = 0;
};

/// Plain loops, for tests and for machines the other does not know.
std::unique_ptr<Backend> MakeReferenceBackend();

/// oneDNN where it has the layer, the reference elsewhere. Errors: Internal when oneDNN does not
/// start.
absl::StatusOr<std::unique_ptr<Backend>> MakeOneDnnBackend();

}  // namespace adamant::kernels
