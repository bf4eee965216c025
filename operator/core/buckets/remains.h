#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/core/buckets/restores.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// All buckets have lost all copies, and `sources` is what disks hold of them: why the job is
/// better off with its checkpoint, for people; "" if it is not. The ledger has counted what the
/// disks lack. Where that is most of what was trained since the checkpoint, it is to be trained
/// again from there; so it is where nothing is left of it, whatever the controller knew of it. Of
/// an epoch that has ended with the checkpoint nothing came after it, and all must be left.
[[nodiscard]] std::string WhyBackToCheckpoint(const JobState& state,
                                              const Restores::Sources& sources);

/// The epoch has ended with the checkpoint, which has more of a bucket than the disk that has most
/// of it (nullopt: none has it). Within an epoch it never stands in: disks have the ledger, which
/// is in the same buckets, as it went on since. What was restored from less since the checkpoint
/// goes on from there.
[[nodiscard]] bool CheckpointHasMore(const JobState& state,
                                     BucketId bucket,
                                     const std::optional<Restores::Source>& disk);

/// The disk, the best there is of the bucket, has no update that the checkpoint lacks. Not so where
/// it went on from less since the checkpoint.
[[nodiscard]] bool HasNothingSinceCheckpoint(const JobState& state,
                                             BucketId bucket,
                                             const Restores::Source& disk);

/// Says why the disk that a server has opened must be an earlier copy of its own, for people; "" if
/// nothing shows that it is. `opened_by`: who of its slot opened it last; 0: nobody. A later one
/// that was a replica had opened its disk before.
[[nodiscard]] std::string WhyDiskIsOld(const JobState& state,
                                       ServerId server,
                                       Incarnation opened_by);

}  // namespace adamant::controller
