#pragma once

#include <cstdint>

#include "services/common/kernels/kernel.h"

// Changes between maps with the batch innermost and the other layouts: transpositions of examples
// and elements in tiles that fit the registers.
namespace adamant::kernels {

/// Maps of `batch` examples, a multiple of kLanes, of which the first `rows` exist. Features are
/// maps with a plane of 1.
struct LaneShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t plane = 0;  ///< height * width
  std::int64_t rows = 0;
};

/// From `layout`, one of the other two, to kBatchInnermost. Examples that do not exist become zeros
/// and are not read. Buffers do not overlap.
void ToBatchInnermost(const LaneShape& shape, MapLayout layout, const float* from, float* to);

/// And back. Examples that do not exist are not written.
void FromBatchInnermost(const LaneShape& shape, MapLayout layout, const float* from, float* to);

}  // namespace adamant::kernels
