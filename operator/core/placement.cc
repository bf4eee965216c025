#include "operator/core/placement.h"

#include <algorithm>
#include <optional>

namespace adamant::controller {

Placement::Placement(const JobSettings& settings, JobState& state, Outbox& outbox, Roster& roster)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      roster_(roster),
      ready_(settings.buckets, false) {}

void Placement::AssignBuckets() {
  if (!state_.buckets.empty() || !roster_.AllRunning(Role::kParameterServer)) {
    return;
  }
  for (std::uint32_t i = 0; i < settings_.buckets; ++i) {
    state_.buckets.push_back({.epoch = 1, .primary = i % settings_.parameter_servers});
  }
  outbox_.StateChanged();
}

bool Placement::ReassignParts() {
  std::vector<std::uint32_t> running;
  for (std::uint32_t slot = 0; slot < settings_.data_servers; ++slot) {
    if (roster_.IsRunning({Role::kDataServer, slot})) {
      running.push_back(slot);
    }
  }
  // A part goes to the running server that deals the fewest.
  const auto load = [&](std::uint32_t slot) {
    return std::count(state_.part_owner.begin(), state_.part_owner.end(), slot);
  };
  bool changed = false;
  for (std::uint32_t& owner : state_.part_owner) {
    if (running.empty() || roster_.IsRunning({Role::kDataServer, owner})) {
      continue;
    }
    owner = *std::min_element(
        running.begin(), running.end(), [&](auto a, auto b) { return load(a) < load(b); });
    changed = true;
  }
  if (changed) {
    outbox_.StateChanged();
  }
  return changed;
}

bool Placement::RebalanceParts() {
  bool changed = false;
  for (std::uint32_t part = 0; part < state_.part_owner.size(); ++part) {
    if (state_.part_owner[part] != part && roster_.IsRunning({Role::kDataServer, part})) {
      state_.part_owner[part] = part;
      changed = true;
    }
  }
  if (changed) {
    outbox_.StateChanged();
  }
  return changed;
}

absl::StatusOr<bool> Placement::OnBucketsReady(std::uint32_t server, const BucketsReady& report) {
  bool changed = false;
  for (const BucketState& reported : report.buckets) {
    if (reported.bucket >= state_.buckets.size()) {
      continue;
    }
    Bucket& bucket = state_.buckets[reported.bucket];
    if (bucket.primary != server || bucket.epoch != reported.epoch) {
      continue;
    }
    if (reported.lost) {
      return absl::DataLossError("parameter-server-" + std::to_string(server) +
                                 " has lost bucket " + std::to_string(reported.bucket) + ": " +
                                 reported.detail);
    }
    ready_[reported.bucket] = true;
    if (!bucket.created) {
      bucket.created = true;
      changed = true;
    }
  }
  if (changed) {
    outbox_.StateChanged();
  }
  return changed;
}

void Placement::OnServerLost(std::uint32_t server) {
  for (std::size_t i = 0; i < state_.buckets.size(); ++i) {
    if (state_.buckets[i].primary == server) {
      ready_[i] = false;
    }
  }
}

bool Placement::Complete() const {
  return !state_.buckets.empty() &&
         std::find(ready_.begin(), ready_.end(), false) == ready_.end() &&
         std::all_of(state_.part_owner.begin(), state_.part_owner.end(), [&](std::uint32_t owner) {
           return roster_.IsStarted({Role::kDataServer, owner});
         });
}

std::uint32_t Placement::BucketsOf(std::uint32_t server) const {
  return static_cast<std::uint32_t>(
      std::count_if(state_.buckets.begin(), state_.buckets.end(), [&](const Bucket& bucket) {
        return bucket.primary == server;
      }));
}

Membership Placement::View() const {
  // Versions rise across restarts of the controller, because its term does.
  Membership view{.version = (state_.term << 32) | changes_,
                  .members = {},
                  .buckets = state_.buckets,
                  .part_owner = state_.part_owner};
  for (const Roster::Slot& slot : roster_.slots()) {
    if (slot.liveness == Roster::Liveness::kRunning) {
      view.members.push_back(
          {.id = slot.id, .incarnation = roster_.IncarnationOf(slot.id), .address = slot.address});
    }
  }
  return view;
}

void Placement::Publish() {
  ++changes_;
  const Membership view = View();
  for (const Member& member : view.members) {
    roster_.SendTo(member.id, view);
  }
}

}  // namespace adamant::controller
