#include "services/common/kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "services/common/base/check.h"

namespace adamant::kernels {

template <class T>
Loss SoftmaxCrossEntropy(std::int64_t classes,
                         std::span<const T> logits,
                         std::span<const std::int32_t> labels,
                         std::span<T> errors) {
  const std::size_t width = static_cast<std::size_t>(classes);
  ADAMANT_CHECK(labels.size() * width <= logits.size(), "a row of logits per label");
  ADAMANT_CHECK(errors.empty() || errors.size() == logits.size(), "an error per logit");
  const T scale = T{1} / static_cast<T>(labels.size());
  Loss loss;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::span<const T> z = logits.subspan(row * width, width);
    const std::int32_t label = labels[row];
    ADAMANT_CHECK(label >= 0 && label < classes, "labels are below the number of classes");
    const auto largest = std::max_element(z.begin(), z.end());
    loss.correct += largest - z.begin() == label ? 1 : 0;
    T sum = 0;
    for (const T logit : z) {
      sum += std::exp(logit - *largest);
    }
    loss.sum += std::log(static_cast<double>(sum)) + static_cast<double>(*largest) -
                static_cast<double>(z[label]);
    for (std::size_t k = 0; !errors.empty() && k < width; ++k) {
      const T target = static_cast<std::int32_t>(k) == label ? T{1} : T{0};
      errors[row * width + k] = (std::exp(z[k] - *largest) / sum - target) * scale;
    }
  }
  if (!errors.empty()) {
    std::fill(
        errors.begin() + static_cast<std::ptrdiff_t>(labels.size() * width), errors.end(), T{0});
  }
  return loss;
}

template Loss SoftmaxCrossEntropy(std::int64_t,
                                  std::span<const float>,
                                  std::span<const std::int32_t>,
                                  std::span<float>);
template Loss SoftmaxCrossEntropy(std::int64_t,
                                  std::span<const double>,
                                  std::span<const std::int32_t>,
                                  std::span<double>);

}  // namespace adamant::kernels
