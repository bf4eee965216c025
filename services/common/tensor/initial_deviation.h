#pragma once

#include "services/common/tensor/shard_layout.h"

namespace adamant {

/// Standard deviation of a parameter's initial values; 0: they are all 0.
double InitialDeviation(const Parameter& parameter);

}  // namespace adamant
