#pragma once

#include <string>

#include "services/common/model/model.h"

namespace adamant::local {

/// Returns what the net computes of an example: its input, its layers in the order of execution and
/// its output, a line each, with the manifest's words: "conv1: Conv2d(input), channels 4, kernel
/// 5x5". Stride, padding, dilation and groups are named where they are not the default. Model files
/// keep it: a net that computes the same has the same text in later versions, too.
std::string NetText(const model::Graph& graph);

/// The first line of `theirs` that is not in its place in `ours`, beside ours: "relu1: Tanh(pool1),
/// not relu1: Relu(pool1)". "" where they are the same.
std::string FirstDifference(const std::string& theirs, const std::string& ours);

}  // namespace adamant::local
