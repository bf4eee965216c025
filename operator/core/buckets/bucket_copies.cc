#include "operator/core/buckets/bucket_copies.h"

#include <algorithm>

namespace adamant::controller {

void BucketCopies::OnSettled(TimePoint now) {
  all_served_ = true;
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    all_served_ = all_served_ && configurations_.IsServed(bucket);
  }
  if (all_served_ && !first_served_) {
    first_served_ = now;
  }
}

void BucketCopies::Forget() {
  all_served_ = false;
  first_served_.reset();
}

bool BucketCopies::IsComplete(TimePoint now) const {
  const auto have = [&](std::uint32_t copies) {
    return std::ranges::all_of(configurations_.all(), [&](const Configuration& configuration) {
      return configuration.replicas.size() >= copies;
    });
  };
  return all_served_ && have(settings_.min_in_sync) &&
         (have(settings_.copies) || now >= *first_served_ + kCopyTime);
}

std::optional<Clock::TimePoint> BucketCopies::NextTimer(TimePoint now) const {
  return first_served_ && *first_served_ + kCopyTime > now
             ? std::optional(*first_served_ + kCopyTime)
             : std::nullopt;
}

bool BucketCopies::HasAllCopies() const {
  if (!all_served_) {
    return false;
  }
  for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (LiveCopiesOf(bucket) < settings_.copies) {
      return false;
    }
  }
  return true;
}

std::size_t BucketCopies::LiveCopiesOf(BucketId bucket) const {
  const auto runs = [&](ServerId replica) { return servers_.Runs(replica); };
  return static_cast<std::size_t>(std::ranges::count_if(configurations_.At(bucket).replicas, runs));
}

bool BucketCopies::NeedsDiskOf(std::uint32_t slot) const {
  return std::ranges::any_of(configurations_.all(), [&](const Configuration& configuration) {
    const auto is_of_slot = [slot](ServerId replica) { return replica.slot == slot; };
    const auto others = std::ranges::count_if(configuration.replicas, [&](ServerId replica) {
      return !is_of_slot(replica) && servers_.Runs(replica);
    });
    return std::ranges::any_of(configuration.replicas, is_of_slot) &&
           others < static_cast<std::ptrdiff_t>(std::max(settings_.min_in_sync, 1U));
  });
}

}  // namespace adamant::controller
