#include "operator/core/buckets/placement.h"

#include <algorithm>
#include <utility>

namespace adamant::controller {

Placement::Placement(const JobSettings& settings, JobState& state, Outbox& outbox, Roster& roster)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      configurations_(state, settings.min_in_sync),
      deaths_(state),
      takeovers_(configurations_, deaths_),
      failovers_(settings, state, configurations_),
      spread_(settings),
      servers_(settings, roster),
      copies_(settings, configurations_, servers_),
      rollback_(settings, state, configurations_, servers_),
      recovery_(settings, state, outbox, configurations_, deaths_, servers_, rollback_),
      publisher_(state, roster) {}

void Placement::Begin(bool none_lives, bool in_order, TimePoint now) {
  servers_.Begin(now);
  if (none_lives && deaths_.ProveAll()) {
    outbox_.StateChanged();
  }
  rollback_.Begin(none_lives);
  recovery_.Begin(in_order);
  unsettled_ = true;
}

void Placement::OnJoined() { unsettled_ = true; }

void Placement::OnLost(std::uint32_t slot, TimePoint now) {
  configurations_.OnGone(servers_.HolderOf(slot));
  recovery_.OnLost(slot);
  servers_.OnLost(slot, now);
  unsettled_ = true;
}

void Placement::OnExited(Holder holder) {
  if (deaths_.Prove(holder)) {
    configurations_.OnGone(holder);
    publisher_.SetChanged();
    unsettled_ = true;
  }
}

void Placement::OnStored(std::uint32_t slot, const StoredBuckets& stored) {
  const Holder holder = servers_.HolderOf(slot);
  servers_.OnOpened(slot);
  recovery_.OnStored(holder, stored);
  rollback_.OnStored(holder, stored);
  const std::vector<Spread::Server> servers = servers_.All();
  if (state_.buckets.empty() && std::ranges::all_of(servers, &Spread::Server::running)) {
    configurations_.Assign(spread_.Assign(servers));
    state_.histories.assign(settings_.buckets, {});
    recovery_.ForgetRetained();
  }
  // The folder names who had it before; the sender itself lives, whatever it says.
  if (deaths_.ProveUpTo(slot, std::min(stored.previous_incarnation, holder.incarnation - 1))) {
    publisher_.SetChanged();
  }
  unsettled_ = true;
}

void Placement::OnProposals(std::uint32_t slot, const Proposals& proposals, TimePoint now) {
  const Holder sender = servers_.HolderOf(slot);
  for (const Proposal& proposal : proposals.proposals) {
    // Who joins must be there: a record never gets a member that is known to be gone.
    const bool gone = proposal.kind == Proposal::Kind::kAdd && !servers_.Runs(proposal.subject);
    if (proposal.proposer != sender || !configurations_.Allows(proposal) || gone) {
      publisher_.OnOutdated(slot);
    } else if (proposal.kind == Proposal::Kind::kTakeOver) {
      takeovers_.Add(proposal, now);
      unsettled_ = true;
    } else {
      configurations_.Apply(proposal);
      unsettled_ = true;
    }
  }
}

void Placement::OnReady(std::uint32_t slot, const BucketsReady& ready) {
  for (const BucketState& state : ready.buckets) {
    OnServing(servers_.HolderOf(slot), state);
  }
}

void Placement::OnServing(Holder holder, const BucketState& state) {
  if (state.bucket >= configurations_.size()) {
    return;
  }
  if (state.lost) {
    unsettled_ = recovery_.OnRejected(holder, state) || unsettled_;
    return;
  }
  const bool restoring =
      configurations_.ServiceOf(state.bucket) == Configurations::Service::kRestoring;
  if (configurations_.OnServing(holder, state.bucket, state.epoch)) {
    ServeAgain(state.bucket, state, restoring);
  }
}

void Placement::ServeAgain(std::uint32_t bucket, const BucketState& state, bool restored) {
  recovery_.OnServed(bucket);
  if (state.failover) {
    failovers_.OnTimes(bucket, *state.failover);
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kDetect, state.failover->detect_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReplace, state.failover->replace_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReconcile, state.failover->reconcile_seconds});
  }
  if (restored) {
    const std::uint64_t lost = failovers_.OnRestored(bucket, state.updates);
    recovery_.OnRestored(bucket, state.updates, lost);
  }
  unsettled_ = true;
}

void Placement::OnProgress(std::uint32_t slot, const ParameterServerProgress& progress) {
  const Holder sender = servers_.HolderOf(slot);
  servers_.SetOldestUnflushed(slot, progress.oldest_unflushed_seconds);
  for (const BucketProgress& bucket : progress.buckets) {
    if (bucket.bucket >= configurations_.size()) {
      continue;
    }
    if (bucket.serving) {
      OnServing(sender,
                {.bucket = bucket.bucket, .epoch = bucket.epoch, .updates = bucket.updates});
    }
    const Bucket& record = configurations_.At(bucket.bucket);
    if (record.primary == sender && record.epoch == bucket.epoch &&
        configurations_.IsServed(bucket.bucket)) {
      failovers_.OnProgress(bucket);
    }
  }
}

void Placement::OnDraining(std::uint32_t slot) {
  servers_.OnDraining(slot);
  unsettled_ = true;
}

void Placement::SetZones(std::map<std::string, std::string> zones) {
  servers_.SetZones(std::move(zones));
  unsettled_ = true;
}

absl::Status Placement::Settle(TimePoint now) {
  if (state_.buckets.empty() || (!unsettled_ && !(timer_ && *timer_ <= now))) {
    return absl::OkStatus();
  }
  unsettled_ = false;
  if (state_.recovery.going_back && !rollback_.went_back() && !recovery_.GoBack()) {
    return absl::OkStatus();
  }
  DecideTakeovers(now);
  const std::vector<Spread::Server> servers = servers_.All();
  if (absl::Status end = recovery_.BringBack(servers, now); !end.ok()) {
    return end;
  }
  deaths_.Prune();
  recovery_.TellRestored();
  Plan(servers, now);
  if (configurations_.TakeChanged() || publisher_.changed()) {
    publisher_.SetChanged();
    outbox_.StateChanged();
  }
  return absl::OkStatus();
}

void Placement::DecideTakeovers(TimePoint now) {
  std::map<std::uint32_t, std::string> buckets;  // by slot of the new primary
  std::uint64_t taken = 0;
  for (const Proposal& winner : takeovers_.Decide(now, settings_.parameter_servers)) {
    configurations_.Apply(winner);
    if (!winner.released) {
      failovers_.OnTakenOver(winner.bucket, now);
      ++taken;
      std::string& list = buckets[winner.proposer.slot];
      list += (list.empty() ? "" : ", ") + std::to_string(winner.bucket);
    }
  }
  if (taken > 0) {
    outbox_.Add(TakenOver{taken});
  }
  for (const auto& [slot, list] : buckets) {
    const MemberId id{Role::kParameterServer, slot};
    outbox_.Tell(
        Note::Kind::kFailover, id, ToString(id) + " takes over, as primary, buckets: " + list);
  }
}

void Placement::OnJobBegun() {
  rollback_.OnJobBegun();
  recovery_.OnJobBegun();
}

void Placement::OnGoingBack() {
  rollback_.OnGoingBack();
  recovery_.OnGoingBack();
  copies_.Forget();
  timer_.reset();
  unsettled_ = true;
}

// Advice, and when to look again.
void Placement::Plan(const std::vector<Spread::Server>& servers, TimePoint now) {
  spread_.Advise(servers, configurations_, now);
  recovery_.OnAdvised();
  copies_.OnSettled(now);
  rollback_.OnSettled(copies_.all_served());
  for (const double seconds : failovers_.OnRecordsChanged(now)) {
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kCatchUp, seconds});
  }
  timer_.reset();
  for (const std::optional<TimePoint>& time : {takeovers_.NextTimer(),
                                               recovery_.NextTimer(now),
                                               Spread::NextTimer(servers, now),
                                               copies_.NextTimer(now)}) {
    if (time && (!timer_ || *time < *timer_)) {
      timer_ = time;
    }
  }
}

}  // namespace adamant::controller
