#include "operator/core/buckets/placement.h"

#include <algorithm>
#include <utility>

namespace adamant::controller {

Placement::Placement(const JobSettings& settings,
                     JobState& state,
                     Outbox& outbox,
                     ProcessTable& processes)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      configurations_(state, settings.min_in_sync),
      dead_servers_(state),
      promotions_(configurations_, dead_servers_),
      failovers_(settings, state, configurations_),
      balancer_(settings),
      servers_(settings, processes),
      copies_(settings, configurations_, servers_),
      checkpoint_return_(settings, state, configurations_, servers_),
      restorer_(
          settings, state, outbox, configurations_, dead_servers_, servers_, checkpoint_return_),
      publisher_(state, processes) {}

void Placement::Begin(bool none_lives, bool in_order, TimePoint now) {
  servers_.Begin(now);
  if (none_lives && dead_servers_.MarkAllDead()) {
    outbox_.StateChanged();
  }
  checkpoint_return_.Begin(none_lives);
  restorer_.Begin(in_order);
  unsettled_ = true;
}

void Placement::OnJoined() { unsettled_ = true; }

void Placement::OnLost(std::uint32_t slot, TimePoint now) {
  configurations_.OnGone(servers_.ServerIdOf(slot));
  restorer_.OnLost(slot);
  servers_.OnLost(slot, now);
  unsettled_ = true;
}

void Placement::OnExited(ServerId server) {
  if (dead_servers_.MarkDead(server)) {
    configurations_.OnGone(server);
    publisher_.SetChanged();
    unsettled_ = true;
  }
}

void Placement::OnStored(std::uint32_t slot, const StoredBuckets& stored) {
  const ServerId server = servers_.ServerIdOf(slot);
  servers_.OnOpened(slot);
  restorer_.OnStored(server, stored);
  checkpoint_return_.OnStored(server, stored);
  const std::vector<Balancer::Server> servers = servers_.All();
  if (state_.buckets.empty() && std::ranges::all_of(servers, &Balancer::Server::running)) {
    configurations_.Assign(balancer_.Assign(servers));
    state_.histories.assign(settings_.buckets, {});
    restorer_.ForgetRetained();
  }
  // The folder names who had it before; the sender itself lives, whatever it says.
  if (dead_servers_.MarkDeadUpTo(
          slot, std::min<Incarnation>(stored.previous_incarnation, server.incarnation - 1))) {
    publisher_.SetChanged();
  }
  unsettled_ = true;
}

void Placement::OnProposals(std::uint32_t slot, const Proposals& proposals, TimePoint now) {
  const ServerId sender = servers_.ServerIdOf(slot);
  for (const Proposal& proposal : proposals.proposals) {
    // Who joins must be there: a configuration never gets a replica that is known to be gone.
    const bool gone = proposal.kind == Proposal::Kind::kAdd && !servers_.Runs(proposal.subject);
    if (proposal.proposer != sender || !configurations_.Allows(proposal) || gone) {
      publisher_.OnOutdated(slot);
    } else if (proposal.kind == Proposal::Kind::kPromote) {
      promotions_.Add(proposal, now);
      unsettled_ = true;
    } else {
      configurations_.Apply(proposal);
      unsettled_ = true;
    }
  }
}

void Placement::OnReady(std::uint32_t slot, const BucketsReady& ready) {
  for (const BucketState& state : ready.buckets) {
    OnServing(servers_.ServerIdOf(slot), state);
  }
}

void Placement::OnServing(ServerId server, const BucketState& state) {
  if (state.bucket >= configurations_.size()) {
    return;
  }
  if (state.lost) {
    unsettled_ = restorer_.OnRejected(server, state) || unsettled_;
    return;
  }
  const bool restoring =
      configurations_.ServiceOf(state.bucket) == Configurations::Service::kRestoring;
  if (configurations_.OnServing(server, state.bucket, state.configuration_version)) {
    ServeAgain(state.bucket, state, restoring);
  }
}

void Placement::ServeAgain(BucketId bucket, const BucketState& state, bool restored) {
  restorer_.OnServed(bucket);
  if (state.failover) {
    failovers_.OnTimes(bucket, *state.failover);
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kDetect, state.failover->detect_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReplace, state.failover->replace_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReconcile, state.failover->reconcile_seconds});
  }
  if (restored) {
    const std::uint64_t lost = failovers_.OnRestored(bucket, state.updates);
    restorer_.OnRestored(bucket, state.updates, lost);
  }
  unsettled_ = true;
}

void Placement::OnProgress(std::uint32_t slot, const ParameterServerProgress& progress) {
  const ServerId sender = servers_.ServerIdOf(slot);
  servers_.SetOldestUnflushed(slot, progress.oldest_unflushed_seconds);
  for (const BucketProgress& bucket : progress.buckets) {
    if (bucket.bucket >= configurations_.size()) {
      continue;
    }
    if (bucket.serving) {
      OnServing(sender,
                {.bucket = bucket.bucket,
                 .configuration_version = bucket.configuration_version,
                 .updates = bucket.updates});
    }
    const Configuration& configuration = configurations_.At(bucket.bucket);
    if (configuration.primary == sender && configuration.version == bucket.configuration_version &&
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
  if (state_.recovery.going_back && !checkpoint_return_.went_back() && !restorer_.GoBack()) {
    return absl::OkStatus();
  }
  DecidePromotions(now);
  const std::vector<Balancer::Server> servers = servers_.All();
  if (absl::Status end = restorer_.BringBack(servers, now); !end.ok()) {
    return end;
  }
  dead_servers_.Prune();
  restorer_.TellRestored();
  Plan(servers, now);
  if (configurations_.TakeChanged() || publisher_.changed()) {
    publisher_.SetChanged();
    outbox_.StateChanged();
  }
  return absl::OkStatus();
}

void Placement::DecidePromotions(TimePoint now) {
  std::map<std::uint32_t, std::string> buckets;  // by slot of the new primary
  std::uint64_t taken = 0;
  for (const Proposal& winner : promotions_.Decide(now, settings_.parameter_servers)) {
    configurations_.Apply(winner);
    if (!winner.released) {
      failovers_.OnPromoted(winner.bucket, now);
      ++taken;
      std::string& list = buckets[winner.proposer.slot];
      list += (list.empty() ? "" : ", ") + std::to_string(winner.bucket);
    }
  }
  if (taken > 0) {
    outbox_.Add(Promoted{taken});
  }
  for (const auto& [slot, list] : buckets) {
    const SlotId id{Role::kParameterServer, slot};
    outbox_.Tell(
        Note::Kind::kFailover, id, ToString(id) + " takes over, as primary, buckets: " + list);
  }
}

void Placement::OnJobBegun() {
  checkpoint_return_.OnJobBegun();
  restorer_.OnJobBegun();
}

void Placement::OnGoingBack() {
  checkpoint_return_.OnGoingBack();
  restorer_.OnGoingBack();
  copies_.Forget();
  timer_.reset();
  unsettled_ = true;
}

// PlacementHint, and when to look again.
void Placement::Plan(const std::vector<Balancer::Server>& servers, TimePoint now) {
  balancer_.PlaceHints(servers, configurations_, now);
  restorer_.OnHinted();
  copies_.OnSettled(now);
  checkpoint_return_.OnSettled(copies_.all_served());
  for (const double seconds : failovers_.OnConfigurationsChanged(now)) {
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kCatchUp, seconds});
  }
  timer_.reset();
  for (const std::optional<TimePoint>& time : {promotions_.NextTimer(),
                                               restorer_.NextTimer(now),
                                               Balancer::NextTimer(servers, now),
                                               copies_.NextTimer(now)}) {
    if (time && (!timer_ || *time < *timer_)) {
      timer_ = time;
    }
  }
}

}  // namespace adamant::controller
