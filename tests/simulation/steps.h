#pragma once

#include <span>

namespace adamant::simulation {

/// A step of the cores, named as its failpoint (docs/failpoints.md), and how it comes about.
struct Step {
  const char* name;
  double share;   ///< of the seeds that pass it
  double passes;  ///< mean over those
};

/// All that some seed passes. Measured beforehand, so that rare ones can be aimed at and one seed
/// replays alone.
std::span<const Step> Steps();

}  // namespace adamant::simulation
