#include "services/common/graph/memory_plan.h"

#include <algorithm>
#include <utility>

#include "services/common/graph/lifetimes.h"

namespace adamant::graph {
namespace {

using kernels::kLanes;

/// A node's memory while it is planned: a piece in place of an offset.
struct Piece {
  int index = -1;
  std::int64_t stride = 0;
};

struct Pieces {
  Piece output;
  Piece kept;
  Piece error;
  std::vector<Piece> input_errors;
  struct Sum {
    Piece from;
    Piece to;
    int input;
  };
  std::vector<Sum> sums;
};

// Time: node i runs forward at i and backward at 2n - i; the loss is between them, at n.
class Planner {
 public:
  Planner(const Program& program,
          const std::vector<KernelTraits>& traits,
          std::int64_t batch,
          bool training)
      : program_(program),
        graph_(program.graph),
        traits_(traits),
        batch_(batch),
        training_(training),
        count_(static_cast<int>(graph_.nodes.size())),
        users_(graph_.nodes.size()),
        segment_(graph_.nodes.size()),
        nodes_(graph_.nodes.size()) {
    for (int i = 0; i < count_; ++i) {
      for (const int input : NodeAt(i).inputs) {
        if (input >= 0) {
          users_[input].push_back(i);
        }
      }
    }
    for (std::size_t s = 0; s < program.segments.size(); ++s) {
      for (int i = program.segments[s].begin; i < program.segments[s].end; ++i) {
        segment_[i] = static_cast<int>(s);
      }
    }
  }

  void PlaceInput() {
    input_ = {lifetimes_.Add(batch_ * *ElementCount(graph_.input)), Stride(graph_.input)};
    NeedAlways(input_);  // it is the caller's
  }

  void PlaceOutputs() {
    for (int i = 0; i < count_; ++i) {
      Piece& output = nodes_[i].output;
      if (SharesInput(i)) {
        const int input = NodeAt(i).inputs[0];
        output = input < 0 ? input_ : nodes_[input].output;
      } else {
        output = NewOutput(i, StaysInBlock(i));
      }
      NeedForward(output, i);
      if (traits_[i].needs_output) {
        NeedBackward(output, i);
      }
      for (const int user : users_[i]) {
        NeedForward(output, user);
        if (traits_[user].needs_inputs) {
          NeedBackward(output, user);
        }
        if (KeepsOperands(user)) {
          NeedAlways(output);
        }
      }
    }
    NeedAlways(nodes_[graph_.output].output);
  }

  /// What the forward passes keep for the backward ones.
  void PlaceKept() {
    constexpr std::int64_t kCacheLine = 64;
    for (int i = 0; i < count_; ++i) {
      if (traits_[i].kept_bytes > 0) {
        const std::int64_t lines = (traits_[i].kept_bytes + kCacheLine - 1) / kCacheLine;
        const std::int64_t floats = lines * kCacheLine / static_cast<std::int64_t>(sizeof(float));
        const std::int64_t calls = Blocked(i) ? (batch_ + kLanes - 1) / kLanes : 1;
        nodes_[i].kept = {lifetimes_.Add(calls * floats), floats};
        NeedForward(nodes_[i].kept, i);
        NeedBackward(nodes_[i].kept, i);
      }
    }
  }

  /// Backwards: a node's error lies where its first user writes it; further users write elsewhere
  /// and add.
  void PlaceErrors() {
    const std::vector<bool> wanted = NodesOnGradientPath();
    Piece& loss = nodes_[graph_.output].error;
    loss = NewOutput(graph_.output, /*by_block=*/false);
    lifetimes_.Extend(loss.index, count_, count_);
    for (int i = count_; i-- > 0;) {
      Pieces& node = nodes_[i];
      if (node.error.index >= 0) {
        NeedBackward(node.error, i);
        if (KeepsOperands(i)) {
          NeedAlways(node.error);
        }
      }
      node.input_errors.resize(NodeAt(i).inputs.size());
      for (std::size_t k = 0; k < node.input_errors.size(); ++k) {
        const int input = NodeAt(i).inputs[k];
        if (input >= 0 && wanted[input]) {
          PlaceInputError(i, k, input);
        }
      }
    }
  }

  MemoryPlan Take() && {
    const std::vector<std::int64_t> offsets = lifetimes_.Pack();
    const auto placed = [&](const Piece& piece) {
      return piece.index < 0 ? Place() : Place{offsets[piece.index], piece.stride};
    };
    MemoryPlan plan;
    plan.input = placed(input_);
    plan.floats = lifetimes_.Size(offsets);
    for (const Pieces& node : nodes_) {
      NodeMemory& memory = plan.nodes.emplace_back();
      memory.output = placed(node.output);
      memory.kept = placed(node.kept);
      memory.error = placed(node.error);
      for (const Piece& error : node.input_errors) {
        memory.input_errors.push_back(placed(error));
      }
      for (const Pieces::Sum& sum : node.sums) {
        memory.sums.push_back({placed(sum.from), placed(sum.to), sum.input});
      }
    }
    return plan;
  }

 private:
  [[nodiscard]] const model::Graph::Node& NodeAt(int i) const { return graph_.nodes[i]; }
  [[nodiscard]] bool Blocked(int i) const { return program_.layouts[i].blocked(); }

  /// Of a node's output.
  [[nodiscard]] std::int64_t Rows(int i) const {
    return program_.layouts[i].output == kernels::MapLayout::kBatchInnermost
               ? (batch_ + kLanes - 1) / kLanes * kLanes
               : batch_;
  }

  static std::int64_t Stride(const Shape& shape) { return kLanes * *ElementCount(shape); }

  void PlaceInputError(int i, std::size_t k, int input) {
    Pieces& node = nodes_[i];
    Piece& error = nodes_[input].error;
    const bool is_first = error.index < 0;
    Piece& written = node.input_errors[k];
    if (SharesInput(i)) {
      written = node.error;
    } else {
      const bool by_block = is_first ? Blocked(input) && !HoldsAllBlocks(input) : Blocked(i);
      written = NewOutput(input, by_block);
    }
    NeedBackward(written, i);
    if (is_first) {
      error = written;
      return;
    }
    NeedBackward(error, i);
    node.sums.push_back({written, error, input});
  }

  /// For node i's output or an error of it: for one block of examples at a time, or for all.
  Piece NewOutput(int i, bool by_block) {
    const std::int64_t elements = *ElementCount(NodeAt(i).output);
    if (by_block) {
      return {lifetimes_.Add(kLanes * elements), 0};
    }
    return {lifetimes_.Add(Rows(i) * elements), Stride(NodeAt(i).output)};
  }

  /// Whether node i's output is read only while its block is at work, that of layers which share it
  /// too.
  [[nodiscard]] bool StaysInBlock(int i) const {
    if (!Blocked(i) || i == graph_.output || (training_ && traits_[i].needs_output)) {
      return false;
    }
    return std::all_of(users_[i].begin(), users_[i].end(), [&](int user) {
      return segment_[user] == segment_[i] && !(training_ && traits_[user].needs_inputs) &&
             (!SharesInput(user) || StaysInBlock(user));
    });
  }

  /// Whether another segment writes or reads node i's error, or that of a layer that shares it.
  [[nodiscard]] bool HoldsAllBlocks(int i) const {
    const bool leaves = std::any_of(users_[i].begin(), users_[i].end(), [&](int user) {
      return segment_[user] != segment_[i];
    });
    return leaves ||
           (SharesInput(i) && NodeAt(i).inputs[0] >= 0 && HoldsAllBlocks(NodeAt(i).inputs[0]));
  }

  /// Whether Context::OperandsOf may be asked for what the node read and was told.
  [[nodiscard]] bool KeepsOperands(int i) const {
    return training_ && NodeAt(i).layer.kind == model::LayerKind::kFullyConnected;
  }

  void NeedForward(const Piece& piece, int i) {
    const auto [begin, end] = Together(i, piece);
    lifetimes_.Extend(piece.index, begin, end);
  }

  void NeedBackward(const Piece& piece, int i) {
    if (training_) {
      const auto [begin, end] = Together(i, piece);
      lifetimes_.Extend(piece.index, 2 * count_ - end, 2 * count_ - begin);
    }
  }

  /// The nodes during which a piece is needed that node i works on: its whole segment if that runs
  /// several times and the piece holds all blocks.
  [[nodiscard]] std::pair<int, int> Together(int i, const Piece& piece) const {
    if (!Blocked(i) || piece.stride == 0) {
      return {i, i};
    }
    const Program::Segment& segment = program_.segments[segment_[i]];
    return {segment.begin, segment.end - 1};
  }

  void NeedAlways(const Piece& piece) {
    lifetimes_.Extend(piece.index, 0, std::int64_t{2} * count_);
  }

  [[nodiscard]] bool SharesInput(int i) const {
    const int input = NodeAt(i).inputs[0];
    if (input >= 0 && users_[input].size() > 1) {
      return false;
    }
    switch (traits_[i].in_place) {
      case kernels::InPlace::kNo:
        return false;
      case kernels::InPlace::kSameValues:
        return true;
      case kernels::InPlace::kOverwrites:
        break;
    }
    // What a flatten shares belongs to the layer before it too.
    int owner = input;
    while (owner >= 0 && traits_[owner].in_place == kernels::InPlace::kSameValues &&
           SharesInput(owner)) {
      owner = NodeAt(owner).inputs[0];
    }
    return owner >= 0 && !traits_[owner].needs_output;
  }

  /// Nodes with parameters of their own or above them.
  [[nodiscard]] std::vector<bool> NodesOnGradientPath() const {
    std::vector<bool> on_path(graph_.nodes.size(), false);
    for (int i = 0; i < count_; ++i) {
      on_path[i] = NodeAt(i).weight >= 0;
      for (const int input : NodeAt(i).inputs) {
        on_path[i] = on_path[i] || (input >= 0 && on_path[input]);
      }
    }
    return on_path;
  }

  const Program& program_;
  const model::Graph& graph_;
  const std::vector<KernelTraits>& traits_;
  const std::int64_t batch_;
  const bool training_;
  const int count_;
  std::vector<std::vector<int>> users_;  // by node
  std::vector<int> segment_;             // by node
  std::vector<Pieces> nodes_;
  Piece input_;
  Lifetimes lifetimes_;
};

}  // namespace

MemoryPlan PlanMemory(const Program& program,
                      const std::vector<KernelTraits>& traits,
                      std::int64_t batch,
                      bool training) {
  Planner planner(program, traits, batch, training);
  planner.PlaceInput();
  planner.PlaceOutputs();
  if (training) {
    planner.PlaceKept();
    planner.PlaceErrors();
  }
  return std::move(planner).Take();
}

}  // namespace adamant::graph
