#pragma once

#include <cstdint>
#include <span>

namespace adamant::kernels {

struct Loss {
  double sum = 0;            ///< of -log p(label), in nats
  std::int64_t correct = 0;  ///< examples whose label has the largest logit (the first, if several)
};

/// Softmax cross-entropy of the first labels.size() rows, and its gradient.
///
/// Shapes:  logits is [rows, classes] with rows >= labels.size(); errors likewise, or empty.
/// Units:   errors = d(mean loss over labels.size() rows) / d(logits); 0 in the rows beyond.
/// Labels:  in [0, classes); the process aborts otherwise (data is checked where it enters).
/// Threads: none started, nothing kept; safe on disjoint errors.
/// Numbers: logits are shifted by their maximum, so that exp does not overflow.
template <class T>
Loss SoftmaxCrossEntropy(std::int64_t classes,
                         std::span<const T> logits,
                         std::span<const std::int32_t> labels,
                         std::span<T> errors);

}  // namespace adamant::kernels
