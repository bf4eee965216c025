#pragma once

#include "services/common/model/model.h"

namespace adamant::graph {

/// The graph as the kernels run it. Same function, same parameters at the same indices, but:
///  - what a fully connected layer or the loss reads is features: a flatten comes before it;
///  - a ReLU that feeds nothing but a max pool comes after it. Both orders give the same values and
///    gradients (the larger of two numbers stays the larger), and there is less left to do.
model::Graph Lower(const model::Graph& graph);

}  // namespace adamant::graph
