#include <algorithm>
#include <cstddef>

#include "operator/core/placement.h"

// How many copies there are, and who needs which.
namespace adamant::controller {

bool Placement::IsComplete(TimePoint now) const {
  const auto have = [&](std::uint32_t copies) {
    return std::all_of(state_.buckets.begin(), state_.buckets.end(), [&](const Bucket& record) {
      return record.members.size() >= copies;
    });
  };
  return all_served_ && have(settings_.min_in_sync) &&
         (have(settings_.copies) || now >= *first_served_ + kCopyTime);
}

bool Placement::HasAllCopies() const {
  return all_served_ && std::ranges::all_of(state_.buckets, [&](const Bucket& record) {
           const auto there =
               std::ranges::count_if(record.members, [&](Holder member) { return Runs(member); });
           return there >= static_cast<std::ptrdiff_t>(settings_.copies);
         });
}

bool Placement::NeedsDiskOf(std::uint32_t slot) const {
  return std::ranges::any_of(state_.buckets, [&](const Bucket& record) {
    const auto is_of_slot = [slot](Holder member) { return member.slot == slot; };
    const auto others = std::ranges::count_if(
        record.members, [&](Holder member) { return !is_of_slot(member) && Runs(member); });
    return std::ranges::any_of(record.members, is_of_slot) &&
           others < static_cast<std::ptrdiff_t>(std::max(settings_.min_in_sync, 1U));
  });
}

// It has joined, and is not lost.
bool Placement::Runs(Holder holder) const {
  return roster_.IsRunning({Role::kParameterServer, holder.slot}) &&
         HolderOf(holder.slot) == holder;
}

}  // namespace adamant::controller
