#include "operator/core/buckets/remains.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "operator/core/diagnosis/recovery.h"
#include "services/common/base/counted.h"

namespace adamant::controller {
namespace {

std::uint64_t Excess(std::uint64_t more, std::uint64_t less) { return more - std::min(more, less); }

}  // namespace

std::string WhyBackToCheckpoint(const JobState& state, const Restores::Sources& sources) {
  const Checkpoint& checkpoint = state.checkpoint;
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  for (const auto& [bucket, source] : sources) {
    const bool made_anew = checkpoint.buckets.empty();
    const std::uint64_t before = made_anew ? 0 : checkpoint.buckets[bucket].updates;
    // A snapshot may know more than the last heartbeats.
    const std::uint64_t known = std::max(state.histories[bucket].updates, before);
    kept += Excess(source.updates, before);
    lost += Excess(known, source.updates);
  }
  const bool is_end = EndedWithCheckpoint(state);
  if (is_end && lost > 0) {
    return "the disks lack " + Counted(lost, "update") + " of " + CheckpointName(state);
  }
  if (is_end || (kept > 0 && kept >= lost)) {
    return "";
  }
  const std::string since = " since " + CheckpointName(state);
  return kept == 0 ? "no update" + since + " is on a disk"
                   : "of the updates" + since + " the disks have " + std::to_string(kept) +
                         " and lack at least " + std::to_string(lost);
}

bool CheckpointHasMore(const JobState& state,
                       BucketId bucket,
                       const std::optional<Restores::Source>& disk) {
  if (state.checkpoint.buckets.empty() || !EndedWithCheckpoint(state)) {
    return false;
  }
  const CheckpointBucket& kept = state.checkpoint.buckets[bucket];
  return !disk || (disk->generation <= kept.generation && disk->updates < kept.updates);
}

bool HasNothingSinceCheckpoint(const JobState& state,
                               BucketId bucket,
                               const Restores::Source& disk) {
  if (state.checkpoint.buckets.empty() || disk.snapshot != 0) {
    return false;
  }
  const CheckpointBucket& kept = state.checkpoint.buckets[bucket];
  const Configuration& configuration = state.buckets[bucket];
  const bool came_from_it = configuration.restored_snapshot == state.checkpoint.snapshot &&
                            disk.generation == configuration.generation;
  return (disk.generation <= kept.generation || came_from_it) && disk.updates <= kept.updates;
}

std::string WhyDiskIsOld(const JobState& state, ServerId server, Incarnation opened_by) {
  Incarnation latest = 0;
  for (const Configuration& configuration : state.buckets) {
    for (const ServerId& replica : configuration.replicas) {
      if (configuration.created && replica.slot == server.slot &&
          replica.incarnation < server.incarnation) {
        latest = std::max(latest, replica.incarnation);
      }
    }
  }
  return opened_by == 0 || opened_by >= latest
             ? ""
             : "its disk seems to be an earlier copy, put back: incarnation " +
                   std::to_string(opened_by) + " was the last to open it, and incarnation " +
                   std::to_string(latest) +
                   " has held buckets since; what was stored since then is missing, unless other "
                   "servers have it. Put back the newest one, or all that the job has stored as of "
                   "one time";
}

}  // namespace adamant::controller
