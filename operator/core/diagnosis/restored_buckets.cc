#include "operator/core/diagnosis/restored_buckets.h"

#include <string>
#include <utility>

#include "services/common/base/counted.h"

namespace adamant::controller {
namespace {

std::string Updates(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " update" : " updates");
}

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
std::string KnownLosses(std::size_t less, std::uint64_t updates) {
  return less == 0
             ? ", and no update is known to be lost"
             : ", and no update of these is known to be lost; of " + std::to_string(less) +
                   " more " + Updates(updates) + (updates == 1 ? " was" : " were") + " rolled back";
}

}  // namespace

void RestoredBuckets::Add(BucketId bucket, SlotId server, std::uint64_t lost) {
  buckets_.insert(bucket);
  if (lost > 0) {
    outbox_.Tell(Note::Kind::kRestored,
                 server,
                 "bucket " + std::to_string(bucket) + " restored from " + ToString(server) + ": " +
                     Updates(lost) + " rolled back");
    less_.insert(bucket);
    updates_ += lost;
  }
}

void RestoredBuckets::TellTogether(bool at_checkpoint) {
  const std::set<std::uint32_t> buckets = std::exchange(buckets_, {});
  const std::set<std::uint32_t> less = std::exchange(less_, {});
  const std::uint64_t updates = std::exchange(updates_, 0);
  std::size_t whole = 0;
  std::size_t all = 0;
  for (BucketId bucket = 0; bucket < state_.buckets.size(); ++bucket) {
    const bool whole_again = buckets.contains(bucket) && !less.contains(bucket);
    all += HoldsParameters(bucket) ? 1 : 0;
    whole += HoldsParameters(bucket) && whole_again ? 1 : 0;
  }
  if (whole == 0) {
    return;
  }
  const std::string which = " (" + WhichBuckets(whole, all, state_.buckets.size()) + ")";
  // What servers applied after their last flush is in nobody's count, but for what was heard of it.
  const bool counted = settings_.logged || ended_in_order_;
  const std::string losses =
      counted
          ? KnownLosses(less.size(), updates)
          : " as they were flushed last" + (less.empty() ? "" : KnownLosses(less.size(), updates)) +
                "; what was applied after that, if anything, is missing and not all counted, "
                "unless a worker that lives sends it again";
  outbox_.Tell(Note::Kind::kRestored,
               state_.epoch,
               at_checkpoint ? "the parameters are back" + which
                             : "parameters were read back from disk" + which + losses);
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
