#include "services/common/graph/profile.h"

namespace adamant::graph {

std::string LayoutName(const NodeProfile& node) {
  if (!node.is_maps) {
    return "features";
  }
  switch (node.layout) {
    case kernels::MapLayout::kChannelsFirst:
      return "channels first";
    case kernels::MapLayout::kChannelsLast:
      return "channels last";
    case kernels::MapLayout::kBatchInnermost:
      return "batch innermost";
  }
  return "";
}

std::string KernelList(std::span<const NodeProfile> nodes) {
  std::string list;
  for (const NodeProfile& node : nodes) {
    list += (list.empty() ? "" : "; ") + node.layer + ": " + node.kernel + " (" + LayoutName(node) +
            ")";
  }
  return list;
}

}  // namespace adamant::graph
