#pragma once

#include <cstddef>
#include <span>

#include "services/common/kernels/gradient_sink.h"

namespace adamant::bench {

/// For what is measured without the change of the weights.
class DropGradient final : public kernels::GradientSink {
 public:
  void Take(std::size_t /*begin*/, std::span<float> /*gradient*/) override {}
};

}  // namespace adamant::bench
