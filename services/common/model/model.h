#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/tensor/shape.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::model {

enum class LayerKind {
  kConv2d,
  kMaxPool,
  kAveragePool,
  kFullyConnected,
  kRelu,
  kSigmoid,
  kTanh,
  kDropout,
  kFlatten,
  kAdd,
  kConcat,
};

/// Heights and widths; {1, 1} means one in both directions.
struct Extent2d {
  std::int64_t height = 1;
  std::int64_t width = 1;
};

/// One named layer. Fields that its kind does not use keep their defaults.
struct Layer {
  std::string name;  ///< unique; [a-z0-9_]+ starting with a letter
  LayerKind kind = LayerKind::kRelu;
  std::vector<std::string>
      inputs;  ///< names of layers, or "input"; kAdd and kConcat take 2 or more, others 1
  std::int64_t channels = 0;  ///< kConv2d: output maps; kFullyConnected: outputs
  Extent2d kernel = {};       ///< kConv2d, pools
  Extent2d stride = {};       ///< kConv2d, pools
  Extent2d padding{
      0, 0};  ///< kConv2d, pools: zeros on each side (average pools divide by the full kernel)
  Extent2d dilation = {};   ///< kConv2d
  std::int64_t groups = 1;  ///< kConv2d
  double dropout_rate = 0;  ///< kDropout: share set to 0 in training, [0, 1)
};

/// A net for classification: layers in any order; the one named `output` feeds the softmax
/// cross-entropy.
struct Net {
  Shape input;               ///< {channels, height, width}
  std::int64_t classes = 0;  ///< the output layer must have this many elements
  std::vector<Layer> layers;
  std::string output;  ///< name of the layer with the logits; empty means the last one listed
};

/// A problem in a Net. `layer` is the index into Net::layers, or -1 for the net as a whole.
struct Problem {
  int layer = -1;
  std::string
      field;  ///< "inputs", "kernel", …: the field of the layer or net at fault; may be empty
  std::string message;  ///< what is wrong, with the sizes involved
};

/// A Net whose shapes fit: layers sorted so that inputs come first, each with the shape of its
/// output. Threads: immutable value.
struct Graph {
  struct Node {
    Layer layer;
    std::vector<int> inputs;  ///< indices into nodes; -1 is the net's input
    Shape output;             ///< without the batch: {channels, height, width} or {features}
    int weight = -1;          ///< index into parameters, or -1
    int bias = -1;            ///< index into parameters, or -1
  };
  Shape input;
  std::int64_t classes = 0;
  std::vector<Node> nodes;  ///< in execution order (stable with respect to the order listed)
  int output = -1;          ///< index of the node with the logits
  std::vector<Parameter> parameters;  ///< in node order, weight before bias
  std::int64_t flop_per_example = 0;  ///< multiply and add counted apart, forward and backward
};

/// Checks `net` and infers its shapes. All problems are returned at once: duplicate names, unknown
/// inputs, cycles, layers that lead nowhere, shapes that do not fit, sizes whose product overflows.
/// A convolution over {features} is refused, a fully connected layer over {c, h, w} flattens by
/// itself.
std::vector<Problem> Check(const Net& net);

/// Builds the graph of a net that passes Check; InvalidArgument with the first problem otherwise.
absl::StatusOr<Graph> BuildGraph(const Net& net);

/// The names accepted by ReferenceNet.
std::vector<std::string> ReferenceNetNames();

/// A net by name: "adam-mnist" (28x28x1; conv 5x5x10, pool 2, conv 5x5x20, pool 2, FC 400, FC 400,
/// 10 classes). NotFound names the known ones.
absl::StatusOr<Net> ReferenceNet(const std::string& name);

}  // namespace adamant::model
