#include <algorithm>

#include "services/common/base/rng.h"
#include "services/common/kernels/reference/reference.h"

namespace adamant::kernels::internal {
namespace {

/// Sets a share of the elements to 0 and scales the others so that the expected value stays. Which
/// ones depends on the seed and the element's canonical place, so nothing is kept between Forward
/// and Backward, and every layout drops the same. Source: Srivastava et al. 2014, JMLR 15
/// ("inverted" form).
template <class T>
class Dropout final : public Kernel<T> {
 public:
  explicit Dropout(const Spec& spec)
      : count_(spec.batch * *ElementCount(spec.output)),
        features_(*ElementCount(spec.output)),
        inner_(features_),
        below_(static_cast<std::uint64_t>(spec.layer.dropout_rate * 0x1.0p53)),
        scale_(static_cast<T>(1 / (1 - spec.layer.dropout_rate))) {
    if (spec.output.size() == 3 && spec.layout == MapLayout::kChannelsLast) {
      inner_ = spec.output[0];
      outer_ = features_ / inner_;
    } else if (spec.output.size() == 3 && spec.layout == MapLayout::kBatchInnermost) {
      inner_ = kLanes;
      outer_ = features_;
    }
  }

  void Forward(const Operands<T>& o) override { Apply(o, o.inputs[0], o.output); }

  void Backward(const Operands<T>& o) override {
    if (T* errors = o.input_errors[0]) {
      Apply(o, o.output_error, errors);
    }
  }

  [[nodiscard]] InPlace in_place() const override { return InPlace::kOverwrites; }
  [[nodiscard]] bool NeedsInputs() const override { return false; }

 private:
  void Apply(const Operands<T>& o, const T* from, T* to) const {
    if (!o.dropout) {
      if (from != to) {
        std::copy_n(from, count_, to);
      }
      return;
    }
    const std::uint64_t start = Mix64(o.seed) + static_cast<std::uint64_t>(o.begin * features_);
    for (std::int64_t n = 0; n < count_ / (outer_ * inner_); ++n) {
      for (std::int64_t i = 0; i < outer_; ++i) {
        for (std::int64_t j = 0; j < inner_; ++j, ++from, ++to) {
          const std::int64_t place = (n * inner_ + j) * outer_ + i;
          const bool drop = (Mix64(start + static_cast<std::uint64_t>(place)) >> 11) < below_;
          *to = drop ? T{0} : *from * scale_;
        }
      }
    }
  }

  const std::int64_t count_;
  const std::int64_t features_;  // of an example
  std::int64_t outer_ = 1;       // memory is rows of [outer_, inner_], the canonical order of
  std::int64_t inner_;           // the same elements [inner_, outer_]
  const std::uint64_t below_;    // an element is dropped when 53 random bits are below
  const T scale_;
};

}  // namespace

template <class T>
std::unique_ptr<Kernel<T>> MakeDropout(const Spec& spec) {
  return std::make_unique<Dropout<T>>(spec);
}

template std::unique_ptr<Kernel<float>> MakeDropout(const Spec&);
template std::unique_ptr<Kernel<double>> MakeDropout(const Spec&);

}  // namespace adamant::kernels::internal
