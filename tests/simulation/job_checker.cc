#include "tests/simulation/job_checker.h"

#include <utility>

namespace adamant::simulation {

void JobChecker::Began(std::uint64_t term) {
  if (std::exchange(term_, term) >= term) {
    violations_.Report("term " + std::to_string(term) + " is taken twice");
  }
  workers_.clear();
}

void JobChecker::Admitted(controller::MemberId id, std::uint64_t incarnation) {
  if (!admitted_.insert({id, incarnation}).second) {
    violations_.Report(controller::ToString(id) + " gets incarnation " +
                       std::to_string(incarnation) + " again");
  }
}

void JobChecker::StateIs(const controller::JobState& state) {
  step_ = state.step;
  if (state.recovery.going_back) {
    epoch_ = state.epoch - 1;
  }
  primaries_.clear();
  for (const controller::Bucket& bucket : state.buckets) {
    primaries_.push_back(bucket.primary);
  }
  incarnations_.resize(state.slots.size());
  for (std::size_t slot = 0; slot < state.slots.size(); ++slot) {
    if (std::exchange(incarnations_[slot], state.slots[slot].incarnation) >
        state.slots[slot].incarnation) {
      violations_.Report("the incarnations of a slot fall");
    }
  }
}

void JobChecker::Sent(const controller::ControllerMessage& message) {
  if (const auto* view = std::get_if<controller::Membership>(&message)) {
    if (std::exchange(map_version_, view->version) > view->version) {
      violations_.Report("the map's version falls");
    }
    workers_.clear();
    for (const controller::Member& member : view->members) {
      if (member.id.role == controller::Role::kWorker) {
        workers_[member.id.slot] = member.incarnation;
      }
    }
  } else if (const auto* take = std::get_if<controller::TakeSnapshot>(&message)) {
    if (std::exchange(snapshot_, take->snapshot) > take->snapshot) {
      violations_.Report("snapshot ids fall");
    }
  }
}

void JobChecker::EpochDone(const controller::EpochResult& row) {
  if (row.epoch != epoch_ + 1) {
    violations_.Report("epoch " + std::to_string(row.epoch) + " follows epoch " +
                       std::to_string(epoch_));
  }
  epoch_ = row.epoch;
}

void JobChecker::Applied(std::uint32_t worker, std::uint64_t incarnation) {
  const auto member = workers_.find(worker);
  if (step_ == controller::Step::kSnapshot && member != workers_.end() &&
      member->second == incarnation) {
    violations_.Report("worker-" + std::to_string(worker) +
                       " pushes while the epoch's snapshot is taken");
  }
}

bool JobChecker::IsPrimary(const parameter_server::Holder& server, BucketId bucket) const {
  return bucket < primaries_.size() && primaries_[bucket].slot == server.slot &&
         primaries_[bucket].incarnation == server.incarnation;
}

}  // namespace adamant::simulation
