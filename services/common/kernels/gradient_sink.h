#pragma once

#include <cstddef>
#include <span>

namespace adamant::kernels {

/// Takes the gradient of a step while it is computed, piece by piece, so that each piece is used
/// while it is in the cache and the whole is never stored.
/// Threads: called by the thread that trains.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// The gradient of the flat parameters from `begin` on is final: a piece of one tensor. In a step
  /// the pieces of a tensor follow each other and cover it once; the tensors come in any order. The
  /// step reads these parameters no more, so that the sink may change them. It may also overwrite
  /// `gradient`, which is valid during the call.
  virtual void Take(std::size_t begin, std::span<float> gradient) = 0;

  /// Returns where in a tensor the pieces should begin, as a share of it in [0, 1), if they are
  /// smaller than the tensor. Another place for each thread keeps threads that share the parameters
  /// from sweeping them in step.
  [[nodiscard]] virtual double start() const { return 0; }
};

}  // namespace adamant::kernels
