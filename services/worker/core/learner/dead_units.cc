#include "services/worker/core/learner/dead_units.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace adamant::worker {
namespace {

constexpr std::uint64_t kNotCounted = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::vector<WatchedLayer> WatchedLayersOf(const model::Graph& graph, const UpdatePlan& plan) {
  std::vector<WatchedLayer> layers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Graph::Node& node = graph.nodes[i];
    if (node.bias < 0 || std::cmp_equal(i, graph.output)) {
      continue;
    }
    const TensorPlan& bias = plan.tensors[static_cast<std::size_t>(node.bias)];
    if (bias.trained) {
      layers.push_back({.name = node.layer.name, .begin = bias.offset, .units = bias.size});
    }
  }
  std::ranges::sort(layers, {}, &WatchedLayer::begin);
  return layers;
}

DeadUnitBoard::DeadUnitBoard(std::vector<WatchedLayer> layers, std::size_t threads)
    : layers_(std::move(layers)), dead_(layers_.size() * threads) {
  for (auto& dead : dead_) {
    dead.store(kNotCounted, std::memory_order_relaxed);
  }
}

void DeadUnitBoard::Set(std::size_t thread, std::size_t layer, std::uint64_t dead) {
  dead_[thread * layers_.size() + layer].store(dead, std::memory_order_relaxed);
}

std::vector<DeadUnits> DeadUnitBoard::Read() const {
  std::vector<DeadUnits> result;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    std::uint64_t dead = kNotCounted;
    for (std::size_t i = layer; i < dead_.size(); i += layers_.size()) {
      dead = std::min(dead, dead_[i].load(std::memory_order_relaxed));
    }
    if (dead != kNotCounted) {
      result.push_back({.layer = layers_[layer].name, .units = layers_[layer].units, .dead = dead});
    }
  }
  return result;
}

DeadUnitSampler::DeadUnitSampler(DeadUnitBoard& board,
                                 std::size_t thread,
                                 kernels::GradientSink& next)
    : board_(board), thread_(thread), next_(next) {
  for (const WatchedLayer& layer : board.layers()) {
    alive_.emplace_back(layer.units);
  }
}

kernels::GradientSink& DeadUnitSampler::Begin() {
  samples_this_step_ = ++steps_ % kSampleEvery == 0;
  if (samples_this_step_) {
    return *this;
  }
  return next_;
}

void DeadUnitSampler::End() {
  if (samples_this_step_ && ++samples_ == kWindow) {
    CloseWindow();
  }
}

void DeadUnitSampler::Take(std::size_t begin, std::span<float> gradient) {
  Note(begin, gradient);  // first, for what follows may overwrite it
  next_.Take(begin, gradient);
}

void DeadUnitSampler::Note(std::size_t begin, std::span<const float> gradient) {
  const std::vector<WatchedLayer>& layers = board_.layers();
  const auto after = std::ranges::upper_bound(layers, begin, {}, &WatchedLayer::begin);
  if (after == layers.begin()) {
    return;
  }
  const auto layer = std::prev(after);
  if (begin >= layer->begin + layer->units) {
    return;
  }
  std::uint8_t* const alive =
      alive_[static_cast<std::size_t>(layer - layers.begin())].data() + (begin - layer->begin);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (gradient[i] != 0) {
      alive[i] = 1;
    }
  }
}

void DeadUnitSampler::CloseWindow() {
  for (std::size_t layer = 0; layer < alive_.size(); ++layer) {
    const auto dead = std::ranges::count(alive_[layer], std::uint8_t{0});
    board_.Set(thread_, layer, static_cast<std::uint64_t>(dead));
    std::ranges::fill(alive_[layer], std::uint8_t{0});
  }
  samples_ = 0;
}

}  // namespace adamant::worker
