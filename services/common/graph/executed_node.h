#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/graph/parameter_plan.h"
#include "services/common/graph/profile.h"
#include "services/common/graph/program.h"
#include "services/common/kernels/backend.h"
#include "services/common/kernels/gradient_sink.h"
#include "services/common/kernels/hogwild.h"
#include "services/common/kernels/kernel.h"

namespace adamant::graph {

/// A parameter tensor's place in the flat parameters, and its memory here.
struct BoundTensor {
  std::size_t offset = 0;
  std::size_t count = 0;
  float* copy = nullptr;      ///< null: the kernel reads the shared weights themselves
  float* gradient = nullptr;  ///< null: the kernel hands it over

  void HandOver(kernels::GradientSink& sink) const {
    if (gradient != nullptr) {
      sink.Take(offset, {gradient, count});
    }
  }

  /// Returns what a kernel reads in this step, given the shared weights.
  [[nodiscard]] const float* Values(std::span<const float> weights) const {
    if (copy == nullptr) {
      return weights.data() + offset;
    }
    kernels::HogwildLoad(weights.subspan(offset, count), {copy, count});
    return copy;
  }
};

/// A node of a program with its kernel and its parameters.
struct ExecutedNode {
  std::unique_ptr<kernels::Kernel<float>> kernel;
  std::uint64_t dropout = 0;  ///< layers of dropout before it: the same in every program
  NodeProfile profile;        ///< but the time
  int parameter = -1;  ///< of its weight, as an index into the graph's parameters; -1 without
  BoundTensor weight;
  BoundTensor bias;
  const float* weight_values = nullptr;  ///< in this step
  const float* bias_values = nullptr;    ///< likewise
  bool is_fully_connected = false;
};

/// Makes the kernels of a program, for batches of up to `batch` examples; without parameters yet.
/// `backend` must outlive them. Errors: the backend's.
absl::StatusOr<std::vector<ExecutedNode>> MakeNodes(const Program& program,
                                                    kernels::Backend& backend,
                                                    std::int64_t batch,
                                                    bool training);

/// Gives the nodes their parameters, with the memory that `plan` lays out at `memory`.
void BindParameters(const Program& program,
                    const ParameterPlan& plan,
                    float* memory,
                    std::vector<ExecutedNode>& nodes);

}  // namespace adamant::graph
