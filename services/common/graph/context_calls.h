#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "services/common/graph/context.h"
#include "services/common/kernels/gradient_sink.h"
#include "services/common/kernels/hogwild.h"
#include "services/common/kernels/kernel.h"

// What a context is made of (context.cc) and goes through in a step (context_step.cc).
namespace adamant::graph {

/// A parameter tensor's place in the flat parameters, and its memory here.
struct Tensor {
  std::size_t offset = 0;
  std::size_t count = 0;
  float* copy = nullptr;      // null: the kernel reads the shared weights themselves
  float* gradient = nullptr;  // null: the kernel hands it over

  void HandOver(kernels::GradientSink& sink) const {
    if (gradient != nullptr) {
      sink.Take(offset, {gradient, count});
    }
  }

  /// What a kernel reads in this step, given the shared weights.
  [[nodiscard]] const float* Values(std::span<const float> weights) const {
    if (copy == nullptr) {
      return weights.data() + offset;
    }
    kernels::HogwildLoad(weights.subspan(offset, count), {copy, count});
    return copy;
  }
};

struct Context::Node {
  std::unique_ptr<kernels::Kernel<float>> kernel;
  std::uint64_t dropout = 0;  // layers of dropout before it: the same in every program
  NodeProfile profile;        // but the time
  int parameter = -1;         // of its weight, as an index into the graph's parameters; -1 without
  Tensor weight;
  Tensor bias;
  const float* weight_values = nullptr;  // in this step
  const float* bias_values = nullptr;    // likewise
  bool is_fully_connected = false;
};

/// One call of a node's kernel: for the whole batch, or for one block of it.
struct Context::Call {
  std::size_t node = 0;
  kernels::Operands<float> operands;
  std::vector<const float*> inputs;  // what operands.inputs refers to
  std::vector<float*> input_errors;  // likewise
  bool first = true;                 // of its node's calls in a step, forward
  bool last = true;                  // likewise, so the first one backward
  bool runs_backward = false;
  std::int64_t in_features = 0;   // elements of an example
  std::int64_t out_features = 0;  // likewise
  struct Sum {
    std::span<const float> from;
    std::span<float> to;
  };
  std::vector<Sum> sums;  // after its backward pass
};

}  // namespace adamant::graph
