#pragma once

#include <vector>

#include "services/common/kernels/backend.h"
#include "services/common/model/model.h"

namespace adamant::graph {

/// A graph as it is executed: lowered, with the layout of every node's maps. Where a node wants its
/// input in another layout, a kFlatten whose output is maps stands between: it changes nothing
/// else.
/// A ReLU that only follows a max pool with the batch innermost is done with it in one pass.
struct Program {
  struct Layouts {
    kernels::MapLayout input = kernels::MapLayout::kChannelsFirst;
    kernels::MapLayout output = kernels::MapLayout::kChannelsFirst;
    bool relu = false;  ///< the ReLU behind the node is part of its kernel, and no node

    /// Returns whether the node's kernel is made for kLanes examples and called for one block after
    /// the other: it reads or writes maps with the batch innermost.
    [[nodiscard]] bool blocked() const {
      constexpr auto kInnermost = kernels::MapLayout::kBatchInnermost;
      return input == kInnermost || output == kInnermost;
    }
  };

  /// Nodes [begin, end). Those of a blocked one run together, one block of examples after the
  /// other, so that what they hand each other stays in the cache.
  struct Segment {
    int begin = 0;
    int end = 0;
    bool blocked = false;
  };

  model::Graph graph;
  std::vector<Layouts> layouts;   ///< by node
  std::vector<Segment> segments;  ///< of all nodes, in order

  /// Returns what the kernel of a node is made for.
  [[nodiscard]] kernels::Spec SpecOf(int node, std::int64_t batch, bool training) const;

  /// Of a node, forward and backward, multiply and add counted apart; 0 without parameters.
  [[nodiscard]] std::int64_t FlopPerExample(int node) const;
};

/// Chooses the layouts that take the least time by the backend's own estimates, changes of layout
/// included. Exact for chains; where a node has several users, what leads to it counts for each of
/// them in part.
Program MakeProgram(const model::Graph& graph,
                    const kernels::Backend& backend,
                    std::int64_t batch,
                    bool training);

}  // namespace adamant::graph
