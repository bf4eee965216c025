#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Growth of the weights since the job began, by layer, on a sample: against the deviation that
/// they were drawn with, so that a worker that begins late knows it too. Weights that grow and
/// learn nothing come of a rate that is too high.
/// Threads: one at a time.
class WeightGrowth {
 public:
  WeightGrowth(const UpdatePlan& plan, const std::vector<Parameter>& parameters);

  /// Fetched values, [flat parameters].
  void Observe(std::span<const float> values);

  /// Of the tensor that has grown most: the root mean square over the initial deviation; 0 before
  /// the first fetch. Not finite where the values are not.
  [[nodiscard]] double ratio() const { return ratio_; }
  [[nodiscard]] std::size_t tensor() const { return tensor_; }

 private:
  struct Sampled {
    std::size_t tensor = 0;
    std::vector<std::uint64_t> places;
    double variance = 0;  // of the initial values
  };

  std::vector<Sampled> tensors_;
  double ratio_ = 0;
  std::size_t tensor_ = 0;
};

}  // namespace adamant::worker
