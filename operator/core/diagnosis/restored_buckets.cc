#include "operator/core/diagnosis/restored_buckets.h"

#include <string>
#include <utility>

#include "services/common/base/counted.h"

namespace adamant::controller {
namespace {

/// "all 10 buckets that hold parameters, of 64 in all": of a small net most hold none, and are not
/// counted.
std::string WhichBuckets(std::size_t some, std::size_t holding, std::size_t all) {
  const std::string which = holding == all ? ""
                            : holding == 1 ? " that holds parameters"
                                           : " that hold parameters";
  return (some < holding ? std::to_string(some) + " of the "
          : holding == 1 ? "the "
                         : "all ") +
         Counted(holding, "bucket") + which +
         (holding == all ? "" : ", of " + std::to_string(all) + " in all");
}

/// `less` buckets lost `updates` that are known.
std::string RolledBackText(std::size_t less, std::uint64_t updates) {
  return Counted(updates, "update") + " of " + Counted(less, "bucket") +
         (updates == 1 ? " was" : " were") + " rolled back";
}

/// `earlier`: updates that were known to be lost before.
std::string NoneLostText(std::uint64_t earlier) {
  return earlier == 0 ? "no update is known to be lost"
                      : "no more is known to be lost than the " + Counted(earlier, "update") +
                            " that had been counted";
}

}  // namespace

void RestoredBuckets::Add(BucketId bucket, SlotId server, std::uint64_t lost) {
  buckets_.insert(bucket);
  if (lost > 0) {
    outbox_.Tell(Note::Kind::kRestored,
                 server,
                 "bucket " + std::to_string(bucket) + " restored from " + ToString(server) + ": " +
                     Counted(lost, "update") + " rolled back");
    less_.insert(bucket);
    updates_ += lost;
  }
}

void RestoredBuckets::TellTogether(bool at_checkpoint) {
  const std::set<std::uint32_t> buckets = std::exchange(buckets_, {});
  const std::set<std::uint32_t> less = std::exchange(less_, {});
  const std::uint64_t updates = std::exchange(updates_, 0);
  std::size_t back = 0;
  std::size_t all = 0;
  for (BucketId bucket = 0; bucket < state_.buckets.size(); ++bucket) {
    all += HoldsParameters(bucket) ? 1 : 0;
    back += HoldsParameters(bucket) && buckets.contains(bucket) ? 1 : 0;
  }
  if (back == 0) {
    return;
  }
  const std::string which = " (" + WhichBuckets(back, all, state_.buckets.size()) + ")";
  outbox_.Tell(Note::Kind::kRestored,
               state_.epoch,
               at_checkpoint ? "the parameters are back" + which
                             : "parameters were read back from disk" + which +
                                   WhatIsMissing(less.size(), updates));
}

// What servers applied after their last flush is in nobody's count, but for what was heard of it.
std::string RestoredBuckets::WhatIsMissing(std::size_t less, std::uint64_t updates) const {
  const std::string rolled_back = less == 0 ? "" : RolledBackText(less, updates);
  if (settings_.logged || ended_in_order_) {
    return ", and " +
           (less == 0 ? NoneLostText(state_.updates_lost + state_.unrecorded_losses) : rolled_back);
  }
  return " as they were flushed last" + (less == 0 ? "" : ": " + rolled_back + ", as was heard") +
         "; what was applied after that, if anything, is missing and not all counted, unless a "
         "worker that lives sends it again";
}

void RestoredBuckets::Forget() {
  buckets_.clear();
  less_.clear();
  updates_ = 0;
}

// Of a small net most buckets hold no shard.
bool RestoredBuckets::HoldsParameters(std::size_t bucket) const {
  return settings_.bucket_bytes.empty() || settings_.bucket_bytes[bucket] > 0;
}

}  // namespace adamant::controller
