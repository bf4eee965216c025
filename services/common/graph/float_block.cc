#include "services/common/graph/float_block.h"

#include <algorithm>
#include <new>

#include "services/common/base/system/huge_pages.h"

namespace adamant::graph {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void FloatBlock::Free::operator()(float* floats) const { ::operator delete[](floats, kAlignment); }

FloatBlock::FloatBlock(std::size_t floats)
    : floats_(new (kAlignment) float[floats]),
      bytes_(static_cast<std::int64_t>(floats * sizeof(float))) {
  PreferHugePages(floats_.get(), floats * sizeof(float));
  std::fill_n(floats_.get(), floats, 0.0f);
}

}  // namespace adamant::graph
