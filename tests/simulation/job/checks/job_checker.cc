#include "tests/simulation/job/checks/job_checker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace adamant::simulation {

void JobChecker::Began(std::uint64_t term) {
  if (std::exchange(term_, term) >= term) {
    violations_.Report("term " + std::to_string(term) + " is taken twice");
  }
  Forget();
}

void JobChecker::Forget() {
  workers_.clear();
  given_up_.clear();
  asked_ = false;
}

void JobChecker::Admitted(controller::SlotId id, Incarnation incarnation) {
  if (!admitted_.insert({id, incarnation}).second) {
    violations_.Report(controller::ToString(id) + " gets incarnation " +
                       std::to_string(incarnation) + " again");
  }
}

void JobChecker::StateIs(const controller::JobState& state) {
  step_ = state.step;
  if (state.productive < std::chrono::milliseconds(0) || state.productive > state.active) {
    violations_.Report("training got on for longer than the job was active");
  }
  if (state.recovery.going_back) {
    epoch_ = state.epoch - 1;
  }
  for (std::size_t bucket = 0; bucket < buckets_.size() && !state.recovery.going_back; ++bucket) {
    CheckDeparting(buckets_[bucket], state.buckets[bucket]);
  }
  buckets_ = state.buckets;
  incarnations_.resize(state.slots.size());
  for (std::size_t slot = 0; slot < state.slots.size(); ++slot) {
    if (std::exchange(incarnations_[slot], state.slots[slot].incarnation) >
        state.slots[slot].incarnation) {
      violations_.Report("the incarnations of a slot fall");
    }
  }
}

// It may be the one that has what was acknowledged.
void JobChecker::CheckDeparting(const controller::Configuration& before,
                                const controller::Configuration& now) {
  if (now.replicas.empty() ||
      (now.generation == before.generation && now.replicas.size() >= min_in_sync_)) {
    return;
  }
  for (const controller::ServerId& member : before.replicas) {
    const bool stays = now.generation == before.generation &&
                       std::ranges::find(now.replicas, member) != now.replicas.end();
    if (!stays && lives_(member)) {
      violations_.Report("parameter-server-" + std::to_string(member.slot) + " incarnation " +
                         std::to_string(member.incarnation) + " lives and leaves " +
                         std::to_string(now.replicas.size()) + " members of a bucket");
    }
  }
}

void JobChecker::CheckWriters(const controller::TakeSnapshot& take) {
  for (const auto& [slot, incarnation] : given_up_) {
    if (take.writers_from[slot] <= incarnation) {
      violations_.Report("snapshot " + std::to_string(take.snapshot) +
                         " is asked for, and worker-" + std::to_string(slot) + " incarnation " +
                         std::to_string(incarnation) + ", which was given up, may push into it");
    }
  }
}

void JobChecker::Sent(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    if (std::exchange(map_version_, view->version) > view->version) {
      violations_.Report("the map's version falls");
    }
    const auto before = std::exchange(workers_, {});
    for (const controller::Member& member : view->members) {
      if (member.id.role == controller::Role::kWorker) {
        workers_[member.id.slot] = member.incarnation;
      }
    }
    for (const auto& [slot, incarnation] : before) {
      const auto member = workers_.find(slot);
      if (member == workers_.end() || member->second != incarnation) {
        given_up_[slot] = incarnation;
      }
    }
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    if (std::exchange(snapshot_, take->snapshot) > take->snapshot) {
      violations_.Report("snapshot ids fall");
    }
    asked_ = true;
    CheckWriters(*take);
  }
}

void JobChecker::EpochDone(const controller::EpochResult& row) {
  if (row.epoch != epoch_ + 1) {
    violations_.Report("epoch " + std::to_string(row.epoch) + " follows epoch " +
                       std::to_string(epoch_));
  }
  epoch_ = row.epoch;
}

// A controller that begins has of its predecessor that the snapshot is taken, and asks for it anew
// when the data tier waits.
void JobChecker::Applied(std::uint32_t worker, Incarnation incarnation) {
  const auto member = workers_.find(worker);
  if (asked_ && step_ == controller::Step::kSnapshot && member != workers_.end() &&
      member->second == incarnation) {
    violations_.Report("worker-" + std::to_string(worker) +
                       " pushes while the epoch's snapshot is taken");
  }
}

bool JobChecker::IsPrimary(const parameter_server::ServerId& server, BucketId bucket) const {
  return bucket < buckets_.size() && buckets_[bucket].primary.slot == server.slot &&
         buckets_[bucket].primary.incarnation == server.incarnation;
}

}  // namespace adamant::simulation
