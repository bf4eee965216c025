#pragma once

#include <cstdint>
#include <vector>

#include "services/common/kernels/kernel.h"

// How a convolution of own kernels is cut into rectangles in which every output sees the same
// positions of the kernel, so that the loops over them need no tests and no padding, and multiply
// nothing by zero. For maps in spec.layout, the batch innermost or the channels last. Offsets and
// steps count floats, from the start of a plane: one channel's map of one block of examples, or of
// one example, where a channel's plane begins one float after that of the channel before.
namespace adamant::kernels::internal {

/// A position of the kernel: what it reads for the first output of a rectangle, and its weights.
struct Tap {
  std::int64_t input = 0;
  std::int64_t weight = 0;  ///< offset within the packed weights of one input channel
};

/// Outputs that see the same taps. Output (i, j) is at output + i * output_row + j * output_column
/// and reads at tap.input + i * input_row + j * input_column.
struct TapRectangle {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t output = 0;
  std::int64_t output_row = 0;
  std::int64_t output_column = 0;
  std::int64_t input_row = 0;
  std::int64_t input_column = 0;
  std::vector<Tap> taps;  ///< empty where a window lies wholly on padding
};

/// out[o] = sum over input channels i and taps of weight[o][i][tap] * in[i]. Both the forward pass
/// and that of the errors: there the inputs are the errors of the outputs, and channels swap roles.
struct Correlation {
  std::int64_t groups = 1;
  std::int64_t inputs = 0;  ///< channels per group
  std::int64_t outputs = 0;
  std::int64_t input_plane = 0;
  std::int64_t output_plane = 0;
  std::int64_t kernel_plane = 0;   ///< positions of the kernel
  std::int64_t weight_output = 0;  ///< steps of the canonical weights from one channel to the next
  std::int64_t weight_input = 0;

  /// Weights are packed by panels of outputs: [group][panel][input channel][position][outputs of a
  /// panel] with the batch innermost, the order in which they are read. The last panel may have
  /// fewer outputs, in as many places.
  std::int64_t panel = 0;
  std::int64_t panels = 0;

  std::vector<TapRectangle> rectangles = {};

  [[nodiscard]] std::int64_t packed_panel() const { return inputs * kernel_plane * panel; }
  [[nodiscard]] std::int64_t packed_size() const { return groups * panels * packed_panel(); }
};

/// A rectangle of outputs in which a row of neighbouring taps all lie on the input. Offsets as in
/// TapRectangle; what is inner is the longer side.
struct WeightPass {
  std::int64_t taps = 0;      ///< of WeightPlan::Taps::kPositions; 1 with kChannels
  std::int64_t position = 0;  ///< of the first tap, in the kernel
  std::int64_t input = 0;
  std::int64_t output = 0;
  std::int64_t outer = 0;  ///< lines
  std::int64_t inner = 0;  ///< pixels of a line
  std::int64_t input_outer = 0;
  std::int64_t input_inner = 0;
  std::int64_t output_outer = 0;
  std::int64_t output_inner = 0;
};

/// gradient[o][i][position] = sum over a rectangle of error[o] * input[i] shifted by the position.
struct WeightPlan {
  /// Axis on which the taps of a register tile differ. Channels see the same outputs everywhere,
  /// so that a pass is all that one kernel position sees. Positions, for inputs of few channels,
  /// are those in one row of the kernel; columns at the map's borders need passes of their own.
  enum class Taps { kPositions, kChannels };

  Taps taps = Taps::kPositions;
  std::int64_t tap_input = 0;     ///< step of the input from one tap to the next
  std::int64_t tap_gradient = 0;  ///< and of the gradient
  std::int64_t widest = 1;        ///< most taps of a tile
  std::vector<WeightPass> passes = {};
};

/// Limits that suit the registers: taps that a tile should have if they are positions, and if they
/// are channels; and input channels from which on these are the better choice.
struct WeightTileLimits {
  std::int64_t positions = 1;
  std::int64_t channels = 1;
  std::int64_t enough_channels = 1;
};

WeightPlan PlanWeightGradient(const Spec& spec, const WeightTileLimits& limits);

/// `largest_panel`: outputs that one register tile can have; channels last, the outputs of every
/// panel.
Correlation ForwardCorrelation(const Spec& spec, std::int64_t largest_panel);
Correlation BackwardCorrelation(const Spec& spec, std::int64_t largest_panel);

}  // namespace adamant::kernels::internal
