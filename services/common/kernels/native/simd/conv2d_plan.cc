#include "services/common/kernels/native/simd/conv2d_plan.h"

#include <algorithm>
#include <optional>

namespace adamant::kernels::internal {
namespace {

/// A sliding window along one direction.
struct Axis {
  std::int64_t in, out, kernel, stride, padding, dilation;
};

Axis RowsOf(const Spec& spec) {
  const model::Layer& l = spec.layer;
  return {spec.inputs[0][1],
          spec.output[1],
          l.kernel.height,
          l.stride.height,
          l.padding.height,
          l.dilation.height};
}

Axis ColumnsOf(const Spec& spec) {
  const model::Layer& l = spec.layer;
  return {spec.inputs[0][2],
          spec.output[2],
          l.kernel.width,
          l.stride.width,
          l.padding.width,
          l.dilation.width};
}

struct AxisTap {
  std::int64_t position;  // in the kernel
  std::int64_t at;        // what it reads for the first output of the run
};

/// Outputs first, first + step, ... that see the same positions of the kernel; from one to the next
/// these move by `in_step`.
struct Run {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::int64_t count = 1;
  std::int64_t in_step = 1;
  std::vector<AxisTap> taps = {};
};

bool SamePositions(const std::vector<AxisTap>& a, const std::vector<AxisTap>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const AxisTap& left, const AxisTap& right) {
        return left.position == right.position;
      });
}

/// Lets the last run go on with a run of one output, if that sees the same.
void Append(Run next, std::vector<Run>& runs) {
  if (!runs.empty() && SamePositions(runs.back().taps, next.taps)) {
    ++runs.back().count;
  } else {
    runs.push_back(std::move(next));
  }
}

std::vector<Run> ForwardRuns(const Axis& a) {
  std::vector<Run> runs;
  for (std::int64_t out = 0; out < a.out; ++out) {
    Run run = {.first = out, .in_step = a.stride};
    for (std::int64_t j = 0; j < a.kernel; ++j) {
      const std::int64_t at = out * a.stride - a.padding + j * a.dilation;
      if (at >= 0 && at < a.in) {
        run.taps.push_back({j, at});
      }
    }
    Append(std::move(run), runs);
  }
  return runs;
}

/// Inputs whose places differ by a multiple of the stride see the same positions of the kernel, so
/// each such set is a correlation of its own, with a stride of 1.
std::vector<Run> BackwardRuns(const Axis& a) {
  std::vector<Run> runs;
  for (std::int64_t phase = 0; phase < std::min(a.stride, a.in); ++phase) {
    std::vector<Run> ours;
    for (std::int64_t in = phase; in < a.in; in += a.stride) {
      Run run = {.first = in, .step = a.stride};
      for (std::int64_t j = 0; j < a.kernel; ++j) {
        const std::int64_t scaled = in + a.padding - j * a.dilation;
        if (scaled >= 0 && scaled % a.stride == 0 && scaled / a.stride < a.out) {
          run.taps.push_back({j, scaled / a.stride});
        }
      }
      Append(std::move(run), ours);
    }
    runs.insert(runs.end(), ours.begin(), ours.end());
  }
  return runs;
}

/// Floats of a map from one pixel of a row to the next, and from one channel to the next.
struct MapSteps {
  std::int64_t pixel, plane;
};

MapSteps StepsOf(MapLayout layout, const Shape& map) {
  return layout == MapLayout::kChannelsLast ? MapSteps{map[0], 1}
                                            : MapSteps{kLanes, map[1] * map[2] * kLanes};
}

/// The widths of input, output and kernel, and floats per pixel of the first two.
struct Widths {
  std::int64_t in, out, kernel, in_pixel, out_pixel;
};

TapRectangle Rectangle(const Run& rows, const Run& columns, Widths width, std::int64_t panel) {
  TapRectangle result = {.rows = rows.count,
                         .columns = columns.count,
                         .output = (rows.first * width.out + columns.first) * width.out_pixel,
                         .output_row = rows.step * width.out * width.out_pixel,
                         .output_column = columns.step * width.out_pixel,
                         .input_row = rows.in_step * width.in * width.in_pixel,
                         .input_column = columns.in_step * width.in_pixel,
                         .taps = {}};
  for (const AxisTap& row : rows.taps) {
    for (const AxisTap& column : columns.taps) {
      result.taps.push_back({(row.at * width.in + column.at) * width.in_pixel,
                             (row.position * width.kernel + column.position) * panel});
    }
  }
  return result;
}

/// Batch innermost, panels are of about one size; channels last, they are whole vectors.
void SetPanels(MapLayout layout, std::int64_t largest_panel, Correlation& to) {
  to.panels = (to.outputs + largest_panel - 1) / largest_panel;
  to.panel =
      layout == MapLayout::kChannelsLast ? largest_panel : (to.outputs + to.panels - 1) / to.panels;
}

void Cut(const std::vector<Run>& rows,
         const std::vector<Run>& columns,
         Widths width,
         Correlation& to) {
  for (const Run& row : rows) {
    for (const Run& column : columns) {
      to.rectangles.push_back(Rectangle(row, column, width, to.panel));
    }
  }
}

/// Outputs first .. first + count - 1 along an axis read on the input with every one of the
/// kernel's positions position .. position + taps - 1, the first output at `at`.
struct Piece {
  std::int64_t first, count, position, taps, at;
};

/// Each position by itself, with all outputs that it serves.
std::vector<Piece> ByPosition(const Axis& a) {
  std::vector<Piece> pieces;
  for (std::int64_t j = 0; j < a.kernel; ++j) {
    const std::int64_t shift = j * a.dilation - a.padding;
    const std::int64_t first = shift < 0 ? (-shift + a.stride - 1) / a.stride : 0;
    const std::int64_t last = a.in - 1 < shift ? -1 : (a.in - 1 - shift) / a.stride;
    const std::int64_t count = std::min(last + 1, a.out) - first;
    if (count > 0) {
      pieces.push_back({first, count, j, 1, first * a.stride + shift});
    }
  }
  return pieces;
}

/// Outputs that see the same positions, with at most `widest` of these at a time.
std::vector<Piece> ByRun(const Axis& a, std::int64_t widest) {
  std::vector<Piece> pieces;
  for (const Run& run : ForwardRuns(a)) {
    const auto taps = static_cast<std::int64_t>(run.taps.size());
    const std::int64_t parts = (taps + widest - 1) / widest;
    for (std::int64_t i = 0, begin = 0; i < parts; ++i) {
      const std::int64_t end = taps * (i + 1) / parts;
      pieces.push_back(
          {run.first, run.count, run.taps[begin].position, end - begin, run.taps[begin].at});
      begin = end;
    }
  }
  return pieces;
}

/// The part of a piece of rows whose outputs are begin .. end - 1; may be empty.
Piece Clip(const Axis& a, const Piece& piece, std::int64_t begin, std::int64_t end) {
  Piece result = piece;
  result.first = std::max(piece.first, begin);
  result.count = std::min(piece.first + piece.count, end) - result.first;
  result.at += (result.first - piece.first) * a.stride;
  return result;
}

/// Floats from one pixel to the next.
struct PixelSteps {
  std::int64_t in, out;
};

WeightPass Pass(const Axis& rows,
                const Axis& columns,
                PixelSteps pixel,
                const Piece& row,
                const Piece& column) {
  WeightPass pass = {.taps = column.taps,
                     .position = row.position * columns.kernel + column.position,
                     .input = (row.at * columns.in + column.at) * pixel.in,
                     .output = (row.first * columns.out + column.first) * pixel.out,
                     .outer = row.count,
                     .inner = column.count,
                     .input_outer = rows.stride * columns.in * pixel.in,
                     .input_inner = columns.stride * pixel.in,
                     .output_outer = columns.out * pixel.out,
                     .output_inner = pixel.out};
  if (pass.inner < std::min<std::int64_t>(pass.outer, 8)) {
    std::swap(pass.outer, pass.inner);
    std::swap(pass.input_outer, pass.input_inner);
    std::swap(pass.output_outer, pass.output_inner);
  }
  return pass;
}

/// Rows of outputs that are done for all positions before the next: as many as the first cache
/// holds of the maps of a tile, whose taps are channels. With the channels last all there is of a
/// few pixels is in the cache anyway.
std::int64_t BandOf(const Spec& spec, std::int64_t channels) {
  constexpr std::int64_t kCache = 40 << 10;
  const std::int64_t rows = spec.output[1];
  if (spec.layout == MapLayout::kChannelsLast) {
    return rows;
  }
  const std::int64_t row_bytes =
      2 * channels * spec.output[2] * kLanes * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(kCache / row_bytes, 1, rows);
}

}  // namespace

WeightPlan PlanWeightGradient(const Spec& spec, const WeightTileLimits& limits) {
  const Axis rows = RowsOf(spec);
  const Axis columns = ColumnsOf(spec);
  const std::int64_t channels = spec.inputs[0][0] / spec.layer.groups;
  const MapSteps in = StepsOf(spec.layout, spec.inputs[0]);
  const PixelSteps pixel = {in.pixel, StepsOf(spec.layout, spec.output).pixel};
  WeightPlan plan;
  if (channels >= limits.enough_channels || (channels > 1 && columns.kernel == 1)) {
    plan.taps = WeightPlan::Taps::kChannels;
    plan.tap_input = in.plane;
    plan.tap_gradient = rows.kernel * columns.kernel;
    plan.widest = std::min(limits.channels, channels);
  } else {
    plan.tap_input = columns.dilation * in.pixel;
    plan.tap_gradient = 1;
    plan.widest = std::min(limits.positions, columns.kernel);
  }
  const bool by_channel = plan.taps == WeightPlan::Taps::kChannels;
  const std::int64_t band = by_channel ? BandOf(spec, limits.channels) : rows.out;
  const std::vector<Piece> pieces =
      by_channel ? ByPosition(columns) : ByRun(columns, limits.positions);
  for (std::int64_t begin = 0; begin < rows.out; begin += band) {
    for (const Piece& all : ByPosition(rows)) {
      const Piece row = Clip(rows, all, begin, begin + band);
      for (const Piece& column : pieces) {
        if (row.count > 0) {
          plan.passes.push_back(Pass(rows, columns, pixel, row, column));
        }
      }
    }
  }
  return plan;
}

Correlation ForwardCorrelation(const Spec& spec, std::int64_t largest_panel) {
  const Axis rows = RowsOf(spec);
  const Axis columns = ColumnsOf(spec);
  const MapSteps in = StepsOf(spec.layout, spec.inputs[0]);
  const MapSteps out = StepsOf(spec.layout, spec.output);
  const std::int64_t inputs = spec.inputs[0][0] / spec.layer.groups;
  const std::int64_t kernel = rows.kernel * columns.kernel;
  Correlation result = {.groups = spec.layer.groups,
                        .inputs = inputs,
                        .outputs = spec.output[0] / spec.layer.groups,
                        .input_plane = in.plane,
                        .output_plane = out.plane,
                        .kernel_plane = kernel,
                        .weight_output = inputs * kernel,
                        .weight_input = kernel};
  SetPanels(spec.layout, largest_panel, result);
  Cut(ForwardRuns(rows),
      ForwardRuns(columns),
      {columns.in, columns.out, columns.kernel, in.pixel, out.pixel},
      result);
  return result;
}

Correlation BackwardCorrelation(const Spec& spec, std::int64_t largest_panel) {
  const Axis rows = RowsOf(spec);
  const Axis columns = ColumnsOf(spec);
  const MapSteps in = StepsOf(spec.layout, spec.output);
  const MapSteps out = StepsOf(spec.layout, spec.inputs[0]);
  const std::int64_t outputs = spec.inputs[0][0] / spec.layer.groups;
  const std::int64_t kernel = rows.kernel * columns.kernel;
  Correlation result = {.groups = spec.layer.groups,
                        .inputs = spec.output[0] / spec.layer.groups,
                        .outputs = outputs,
                        .input_plane = in.plane,
                        .output_plane = out.plane,
                        .kernel_plane = kernel,
                        .weight_output = kernel,
                        .weight_input = outputs * kernel};
  SetPanels(spec.layout, largest_panel, result);
  Cut(BackwardRuns(rows),
      BackwardRuns(columns),
      {columns.out, columns.in, columns.kernel, in.pixel, out.pixel},
      result);
  return result;
}

}  // namespace adamant::kernels::internal
