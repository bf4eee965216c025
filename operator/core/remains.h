#pragma once

#include <cstdint>
#include <string>

#include "operator/core/restores.h"
#include "operator/core/state.h"

namespace adamant::controller {

/// All buckets have lost all copies, and `sources` is what disks hold of them: why the job is
/// better off with its checkpoint, for people; "" if it is not. The ledger has counted what the
/// disks lack. Where that is most of what was trained since the checkpoint, it is to be trained
/// again from there; so it is where nothing is left of it, whatever the controller knew of it. Of
/// an epoch that has ended with the checkpoint nothing came after it, and all must be left.
[[nodiscard]] std::string WhyBackToCheckpoint(const JobState& state,
                                              const Restores::Sources& sources);

/// The job trains no more on what its epoch has ended with, and a disk that has `updates` of the
/// bucket lacks some of that: its model is what the checkpoint has.
[[nodiscard]] bool LacksOfEnd(const JobState& state, std::uint32_t bucket, std::uint64_t updates);

}  // namespace adamant::controller
