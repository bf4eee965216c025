#include <algorithm>
#include <cstddef>

#include "operator/core/buckets/placement.h"

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
  if (!all_served_) {
    return false;
  }
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (LiveCopiesOf(bucket) < settings_.copies) {
      return false;
    }
  }
  return true;
}

std::size_t Placement::LiveCopiesOf(std::uint32_t bucket) const {
  const auto runs = [&](Holder member) { return Runs(member); };
  return static_cast<std::size_t>(std::ranges::count_if(configurations_.At(bucket).members, runs));
}

bool Placement::KnowsWhoRuns() const {
  return std::ranges::none_of(roster_.slots(), [&](const Roster::Slot& slot) {
    return slot.id.role == Role::kParameterServer && roster_.MayPush(slot) &&
           !roster_.IsRunning(slot.id);
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
