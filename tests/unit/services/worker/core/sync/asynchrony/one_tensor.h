#pragma once

#include <cstdint>

#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

inline UpdatePlan OneTensor(std::uint64_t size) {
  UpdatePlan plan;
  plan.elements = size;
  plan.tensors.push_back({.offset = 0, .size = size, .optimiser = {}});
  return plan;
}

}  // namespace adamant::worker
