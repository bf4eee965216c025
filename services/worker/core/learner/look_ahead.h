#pragma once

#include <span>

namespace adamant::worker {

/// Lead of the weights over what a fetch gave, to where others will have moved them by the time
/// that what is computed here reaches the servers, if they go on as they did
/// (docs/design/0009-asynchrony.md).
struct LookAhead {
  std::span<float> ahead;  ///< weights less what is known; empty: never ahead
  float factor = 0;        ///< on the movement of others between two fetches
  bool any = false;        ///< `ahead` is not all 0
};

}  // namespace adamant::worker
