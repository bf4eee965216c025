#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "services/common/kernels/gradient_sink.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shape.h"

namespace adamant::kernels {

/// Layout in memory of activations of shape {channels, height, width}. Features have only one.
enum class MapLayout {
  kChannelsFirst,   ///< [batch, channels, height, width]: the canonical one
  kChannelsLast,    ///< [batch, height, width, channels]
  kBatchInnermost,  ///< [batch / kLanes, channels, height, width, kLanes]
};

/// Examples that lie side by side in kBatchInnermost; batches are a multiple of it there.
inline constexpr std::int64_t kLanes = 16;

/// Task of a kernel. Shapes are without the batch; the layer fits them (model::Check).
struct Spec {
  model::Layer layer;
  std::vector<Shape> inputs;
  Shape output;
  std::int64_t batch = 1;
  bool training = false;                               ///< Backward will be called
  MapLayout layout = MapLayout::kChannelsFirst;        ///< of the output
  MapLayout input_layout = MapLayout::kChannelsFirst;  ///< of the inputs: the same but for kFlatten

  /// A ReLU follows and is part of the kernel: kMaxPool with the batch innermost.
  bool relu = false;
};

/// Memory that a kernel reads and writes. Activations and errors (the gradient of the loss with
/// respect to an activation) have spec.batch rows in spec.layout; parameters and their gradients
/// are canonical (tensor/shard_layout.h). Pointers a layer has no use for may be null.
template <class T>
struct Operands {
  std::span<const T* const> inputs;
  T* output = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  bool dropout = false;    ///< false: dropout layers pass their input on
  std::uint64_t seed = 0;  ///< of this step and layer: what dropout drops

  // A step may come in several calls, each with other examples.
  std::int64_t begin = 0;    ///< of this call's examples among those of the step
  std::int64_t missing = 0;  ///< rows at the end that are no examples: kFlatten makes zeros of them
  /// False: not the first call of its step, so the parameters are those of the call before, and
  /// what is given for them adds up.
  bool first = true;
  /// Kernel::KeptBytes of them on a cache line, which Backward finds as Forward left them; null
  /// where only Forward will be called.
  std::uint8_t* kept = nullptr;

  // Backward only. What it writes it overwrites, but gradients of parameters if `first` is false.
  const T* output_error = nullptr;
  std::span<T* const> input_errors;  ///< an entry may be null: not asked for
  T* weight_gradient = nullptr;
  T* bias_gradient = nullptr;
  /// For kernels that hand over the weight's gradient themselves, which then begins here.
  GradientSink* sink = nullptr;
  std::size_t weight_begin = 0;
};

/// Ability of a kernel to run with output == inputs[0] and input_errors[0] == output_error.
enum class InPlace {
  kNo,
  kOverwrites,  ///< it may, and changes the values there
  kSameValues,  ///< it may, and then has nothing to do
};

/// One layer's computation for a fixed shape and batch. Made before training; Forward and Backward
/// allocate nothing. Threads: one at a time.
template <class T>
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Returns which implementation it is, for people: "oneDNN jit:avx512_core".
  [[nodiscard]] virtual std::string name() const { return "reference"; }

  virtual void Forward(const Operands<T>& operands) = 0;

  /// Follows a Forward with the same operands, but for the inputs and the output if it does not
  /// need them. The weights may have changed since (training threads share them).
  virtual void Backward(const Operands<T>& operands) = 0;

  [[nodiscard]] virtual InPlace in_place() const { return InPlace::kNo; }

  /// Returns whether Backward reads `inputs`, so that these must not be overwritten in between.
  [[nodiscard]] virtual bool NeedsInputs() const { return true; }

  /// Returns whether Backward reads `output`, likewise.
  [[nodiscard]] virtual bool NeedsOutput() const { return false; }

  /// Bytes that Forward keeps for Backward, by call: of spec.batch examples.
  [[nodiscard]] virtual std::int64_t KeptBytes() const { return 0; }

  /// Returns whether `weight` may be the shared weights, to which other threads write meanwhile.
  /// Other kernels are given a private copy.
  [[nodiscard]] virtual bool ReadsSharedWeights() const { return false; }

  /// Returns whether Backward gives the weight's gradient to `sink` in pieces, each when it has
  /// read that part of the weight for the last time. Other kernels write it to `weight_gradient`.
  [[nodiscard]] virtual bool HandsOverWeightGradient() const { return false; }
};

}  // namespace adamant::kernels
