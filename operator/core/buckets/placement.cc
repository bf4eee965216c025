#include "operator/core/buckets/placement.h"

#include <algorithm>
#include <utility>

#include "operator/core/buckets/remains.h"
#include "operator/core/diagnosis/recovery.h"
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

}  // namespace

Placement::Placement(const JobSettings& settings, JobState& state, Outbox& outbox, Roster& roster)
    : settings_(settings),
      state_(state),
      outbox_(outbox),
      roster_(roster),
      configurations_(state, settings.min_in_sync),
      deaths_(state),
      takeovers_(configurations_, deaths_),
      restores_(settings.logged),
      failovers_(settings, state, configurations_),
      spread_(settings),
      away_since_(settings.parameter_servers) {}

void Placement::Begin(bool none_lives, bool in_order, TimePoint now) {
  away_since_.assign(settings_.parameter_servers, now);
  opened_.assign(settings_.parameter_servers, 0);
  if (none_lives && deaths_.ProveAll()) {
    outbox_.StateChanged();
  }
  may_roll_back_ = none_lives && state_.checkpoint.snapshot != 0;
  ended_in_order_ = in_order;
  unsettled_ = true;
  ForgetRetained();  // who was lost before is not known
}

void Placement::ForgetRetained() {
  not_retained_.resize(state_.buckets.size());
  for (std::uint32_t bucket = 0; bucket < not_retained_.size(); ++bucket) {
    not_retained_[bucket] = KnownUpdates(bucket);
  }
}

// A checkpoint may know more than the last heartbeats.
std::uint64_t Placement::KnownUpdates(std::uint32_t bucket) const {
  const auto& kept = state_.checkpoint.buckets;
  return std::max(state_.histories[bucket].updates, kept.empty() ? 0 : kept[bucket].updates);
}

void Placement::OnJoined() { unsettled_ = true; }

void Placement::OnLost(std::uint32_t slot, TimePoint now) {
  configurations_.OnGone(HolderOf(slot));
  restores_.Forget(slot);
  draining_.erase(slot);
  unflushed_.erase(slot);
  away_since_[slot] = now;
  unsettled_ = true;
}

void Placement::OnExited(Holder holder) {
  if (deaths_.Prove(holder)) {
    configurations_.OnGone(holder);
    changed_ = true;
    unsettled_ = true;
  }
}

void Placement::OnStored(std::uint32_t slot, const StoredBuckets& stored) {
  const Holder holder = HolderOf(slot);
  opened_[slot] = holder.incarnation;
  restores_.OnStored(holder, stored);
  empty_disks_.erase(slot);
  const bool is_member =
      std::ranges::any_of(state_.buckets, [&](const Bucket& record) { return record.Has(holder); });
  if (!is_member && std::ranges::none_of(stored.buckets, &StoredBucket::complete)) {
    empty_disks_[slot] = state_.checkpoint.snapshot;
  }
  const std::vector<Spread::Server> servers = Servers();
  if (state_.buckets.empty() && std::ranges::all_of(servers, &Spread::Server::running)) {
    configurations_.Assign(spread_.Assign(servers));
    state_.histories.assign(settings_.buckets, {});
    ForgetRetained();
  }
  // The folder names who had it before; the sender itself lives, whatever it says.
  if (deaths_.ProveUpTo(slot, std::min(stored.previous_incarnation, holder.incarnation - 1))) {
    changed_ = true;
  }
  unsettled_ = true;
}

void Placement::OnProposals(std::uint32_t slot, const Proposals& proposals, TimePoint now) {
  const Holder sender = HolderOf(slot);
  for (const Proposal& proposal : proposals.proposals) {
    // Who joins must be there: a record never gets a member that is known to be gone.
    const bool gone = proposal.kind == Proposal::Kind::kAdd &&
                      (!roster_.IsRunning({Role::kParameterServer, proposal.subject.slot}) ||
                       HolderOf(proposal.subject.slot) != proposal.subject);
    if (proposal.proposer != sender || !configurations_.Allows(proposal) || gone) {
      outdated_.insert(slot);
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
    OnServing(HolderOf(slot), state);
  }
}

void Placement::OnServing(Holder holder, const BucketState& state) {
  if (state.bucket >= configurations_.size()) {
    return;
  }
  const Bucket& record = configurations_.At(state.bucket);
  const bool restoring =
      configurations_.ServiceOf(state.bucket) == Configurations::Service::kRestoring;
  if (state.lost) {
    if (record.primary == holder && record.epoch == state.epoch && record.members.size() == 1) {
      rejected_[state.bucket] = state.epoch;
      restores_.OnLost(state.bucket, record, TimePoint{});
      restores_.Reject(state.bucket, holder, state.detail);
      unsettled_ = true;
    }
    return;
  }
  if (configurations_.OnServing(holder, state.bucket, state.epoch)) {
    ServeAgain(state.bucket, state, restoring);
  }
}

void Placement::ServeAgain(std::uint32_t bucket, const BucketState& state, bool restored) {
  restores_.OnServed(bucket);
  if (state.failover) {
    failovers_.OnTimes(bucket, *state.failover);
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kDetect, state.failover->detect_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReplace, state.failover->replace_seconds});
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kReconcile, state.failover->reconcile_seconds});
  }
  if (restored) {
    const std::uint64_t lost = failovers_.OnRestored(bucket, state.updates);
    not_retained_[bucket] = std::min(not_retained_[bucket], state.updates);
    const MemberId from{Role::kParameterServer, configurations_.At(bucket).primary.slot};
    restored_.buckets.insert(bucket);
    if (lost > 0) {
      outbox_.Tell(Note::Kind::kRestored,
                   from,
                   "bucket " + std::to_string(bucket) + " restored from " + ToString(from) + ": " +
                       Updates(lost) + " rolled back");
      restored_.less.insert(bucket);
      restored_.updates += lost;
      state_.lost_with_all += may_roll_back_ ? lost : 0;
    }
    outbox_.StateChanged();
  }
  unsettled_ = true;
}

void Placement::OnProgress(std::uint32_t slot, const ParameterServerProgress& progress) {
  const Holder sender = HolderOf(slot);
  unflushed_[slot] = progress.oldest_unflushed_seconds;
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
  draining_.insert(slot);
  unsettled_ = true;
}

void Placement::SetZones(std::map<std::string, std::string> zones) {
  zones_ = std::move(zones);
  unsettled_ = true;
}

absl::Status Placement::Settle(TimePoint now) {
  if (state_.buckets.empty() || (!unsettled_ && !(timer_ && *timer_ <= now))) {
    return absl::OkStatus();
  }
  unsettled_ = false;
  if (state_.recovery.going_back && !went_back_) {
    if (!HasCheckpointRunning()) {
      return absl::OkStatus();
    }
    went_back_ = true;
    RollBack();
  }
  DecideTakeovers(now);
  const std::vector<Spread::Server> servers = Servers();
  if (absl::Status end = BringBack(servers, now); !end.ok()) {
    return end;
  }
  deaths_.Prune();
  TellRestored();
  Plan(servers, now);
  if (configurations_.TakeChanged() || changed_) {
    changed_ = true;
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

// Buckets that came back without a loss that is known (a controller that died has forgotten the
// last counts) are told together, when all are back.
void Placement::TellRestored() {
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (configurations_.ServiceOf(bucket) == Configurations::Service::kRestoring) {
      return;
    }
  }
  const Restored restored = std::exchange(restored_, {});
  const std::uint64_t updates = restored.updates;
  const std::size_t less = restored.less.size();
  std::size_t whole = 0;
  std::size_t all = 0;
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    const bool holds_some =  // of a small net most hold no shard
        settings_.bucket_bytes.empty() || settings_.bucket_bytes[bucket] > 0;
    all += holds_some ? 1 : 0;
    const bool whole_again = restored.buckets.contains(bucket) && !restored.less.contains(bucket);
    whole += holds_some && whole_again ? 1 : 0;
  }
  if (whole == 0) {
    return;
  }
  const std::string which = " (" + WhichBuckets(whole, all, configurations_.size()) + ")";
  const std::string lost = less == 0 ? ", and no update is known to be lost"
                                     : ", and no update of these is known to be lost; of " +
                                           std::to_string(less) + " more " + Updates(updates) +
                                           (updates == 1 ? " was" : " were") + " rolled back";
  // What servers applied after their last flush is in nobody's count, but for what was heard of it.
  const std::string uncounted =
      settings_.logged || ended_in_order_
          ? ""
          : "; what servers had not flushed when they ended is missing, and only in part "
            "counted, unless a worker that lives sends it again";
  outbox_.Tell(Note::Kind::kRestored,
               state_.epoch,
               at_checkpoint_ ? "the parameters are back" + which
                              : "parameters were read back from disk" + which + lost + uncounted);
}

// Nobody of the record can serve it. The end of one whose disk was left with its node is never
// proved; it acknowledges nothing without the others, of which one, at least, is dead.
bool Placement::IsLost(std::uint32_t bucket) const {
  const Bucket& record = configurations_.At(bucket);
  const auto rejected = rejected_.find(bucket);
  const auto is_dead = [&](Holder member) { return deaths_.Has(member); };
  const bool all_gone = std::ranges::all_of(record.members, [&](Holder member) {
    return is_dead(member) || restores_.HasLostDisk(member);
  });
  return (all_gone && std::ranges::any_of(record.members, is_dead)) ||
         (rejected != rejected_.end() && rejected->second == record.epoch);
}

absl::Status Placement::BringBack(const std::vector<Spread::Server>& servers, TimePoint now) {
  Load load = LoadOfServers();
  Restores::Sources sources;
  bool all_known = true;
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    if (!IsLost(bucket)) {
      continue;
    }
    const Bucket& record = configurations_.At(bucket);
    if (!record.created) {
      if (const auto holder = Spread::Replacement(servers, load)) {
        configurations_.Reassign(bucket, *holder);
        ++load.primaries[holder->slot];
      }
      continue;
    }
    configurations_.SetRestoring(bucket);
    restores_.OnLost(bucket, record, now);
    const absl::StatusOr<std::optional<Restores::Source>> source =
        SourceOf(bucket, servers, load, now);
    if (!source.ok()) {
      return OnNobodyHas(source.status(), settings_.only_checkpoints);
    }
    all_known = all_known && source->has_value();
    if (*source) {
      ++load.primaries[(*source)->holder.slot];
      sources.emplace(bucket, **source);
    }
  }
  if (absl::Status better = CheckLosses(sources); !better.ok()) {
    return better;
  }
  return Restore(sources, all_known);
}

// In a log is all that was acknowledged; before the job begins Restore weighs all buckets together.
absl::Status Placement::CheckLosses(const Restores::Sources& sources) const {
  if (may_roll_back_ || settings_.logged || settings_.only_checkpoints ||
      state_.recovery.going_back || !MayReadCheckpoint() ||
      state_.recovery.newest.checkpoint.snapshot != state_.checkpoint.snapshot) {
    return absl::OkStatus();
  }
  for (const auto& [bucket, source] : sources) {
    const std::uint64_t gone =
        settings_.workers_retain ? not_retained_[bucket] : KnownUpdates(bucket);
    if (source.updates < gone && HasNothingSinceCheckpoint(state_, bucket, source)) {
      const MemberId from{Role::kParameterServer, source.holder.slot};
      return absl::AbortedError("all copies of bucket " + std::to_string(bucket) +
                                " are lost, the disk of " + ToString(from) +
                                " has no update of it since " + CheckpointName(state_) +
                                ", and no worker can send the rest again");
    }
  }
  return absl::OkStatus();
}

// Who is to serve the lost bucket. A job that may still go back to its checkpoint as a whole
// decides so where it knows all sources; a log lacks nothing that was acknowledged.
absl::StatusOr<std::optional<Restores::Source>> Placement::SourceOf(
    std::uint32_t bucket,
    const std::vector<Spread::Server>& servers,
    const Load& load,
    TimePoint now) const {
  absl::StatusOr<std::optional<Restores::Source>> disk = restores_.Choose(bucket, load, now);
  const Checkpoint& checkpoint = state_.checkpoint;
  const bool unreadable = rejected_.contains(bucket) &&
                          configurations_.At(bucket).restored_snapshot == checkpoint.snapshot;
  const bool is_known = !disk.ok() || disk->has_value();
  if (may_roll_back_ || settings_.only_checkpoints || unreadable || !is_known ||
      (disk.ok() && settings_.logged) ||
      !CheckpointHasMore(state_, bucket, disk.ok() ? *disk : std::nullopt)) {
    return disk;
  }
  const CheckpointBucket& kept = checkpoint.buckets[bucket];
  if (servers[kept.slot].running) {
    return std::optional(Restores::Source{.holder = HolderOf(kept.slot),
                                          .updates = kept.updates,
                                          .generation = kept.generation,
                                          .snapshot = checkpoint.snapshot});
  }
  if (restores_.IsWaiting(bucket, now)) {
    return std::optional<Restores::Source>();
  }
  return disk;
}

// While the job may still go back to its checkpoint, what is left of all buckets decides together.
absl::Status Placement::Restore(const Restores::Sources& sources, bool all_known) {
  if (sources.empty() || (may_roll_back_ && !all_known)) {
    return absl::OkStatus();
  }
  if (may_roll_back_ && !settings_.logged && HasCheckpointRunning() && MayReadCheckpoint()) {
    if (const std::string why = WhyBackToCheckpoint(state_, sources); !why.empty()) {
      return OnNobodyHas(absl::DataLossError(why), true);
    }
  }
  for (const auto& [bucket, source] : sources) {
    configurations_.Restore(bucket, source.holder, source.snapshot);
    restores_.Touch(bucket, source.holder);
  }
  return absl::OkStatus();
}

// A bucket has no complete copy. Before the job begins, with no process of before alive, everything
// can go back to the checkpoint together: parameters, tables and ledger. Where a disk has nothing
// that it should have, the checkpoint may be gone with it.
absl::Status Placement::OnNobodyHas(const absl::Status& why, bool disks_have_checkpoint) {
  if (!may_roll_back_) {
    return why;
  }
  if (HasCheckpointRunning()) {
    outbox_.Tell(Note::Kind::kRestored,
                 state_.epoch,
                 (settings_.only_checkpoints ? "nothing but checkpoints is stored"
                                             : std::string(why.message())) +
                     "; the job goes back to " + CheckpointName(state_) +
                     (disks_have_checkpoint || state_.checkpoint.buckets.empty()
                          ? ""
                          : ", if it is still on the disks") +
                     (EndedWithCheckpoint(state_) ? "" : ", and trains again what came after it"));
    RollBack();
  }
  return absl::OkStatus();
}

bool Placement::MayGoBackLater() const {
  return !state_.checkpoint.buckets.empty() && !at_checkpoint_;
}

std::string Placement::WhatHelps(const absl::Status& why) const {
  const std::string checkpoint = CheckpointName(state_);
  std::string text(why.message());
  if (MayGoBackLater()) {
    return text + "; --resume goes back to " + checkpoint +
           ", if it is still on the servers' disks";
  }
  if (!state_.checkpoint.buckets.empty()) {
    text = checkpoint + " cannot be restored either: " + text;
  }
  return text +
         "; what was trained is lost, unless these servers' disks come back with what they " +
         "held: then --resume goes on; else begin the job anew";
}

// Each disk that has a part of the checkpoint is open, and known; for weights that are made anew,
// each disk.
bool Placement::HasCheckpointRunning() const {
  const std::vector<Spread::Server> servers = Servers();
  const auto& buckets = state_.checkpoint.buckets;
  return buckets.empty() ? std::ranges::all_of(servers, &Spread::Server::running)
                         : std::ranges::all_of(buckets, [&](const CheckpointBucket& bucket) {
                             return servers[bucket.slot].running;
                           });
}

// A server that has nothing of any bucket on its disk has lost that, and no checkpoint is on it.
bool Placement::MayReadCheckpoint() const {
  return std::ranges::none_of(state_.checkpoint.buckets, [&](const CheckpointBucket& bucket) {
    const auto empty = empty_disks_.find(bucket.slot);
    return empty != empty_disks_.end() && empty->second >= state_.checkpoint.snapshot;
  });
}

void Placement::OnGoingBack() {
  went_back_ = false;
  restored_ = {};
  all_served_ = false;
  first_served_.reset();
  timer_.reset();
  unsettled_ = true;
}

void Placement::RollBack() {
  may_roll_back_ = false;
  at_checkpoint_ = true;
  rolled_back_ = true;
  rejected_.clear();
  UndoUpdates(state_);
  const bool made_anew = state_.checkpoint.buckets.empty();
  const std::vector<Holder> makers = made_anew ? spread_.Assign(Servers()) : std::vector<Holder>();
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    const Holder holder =
        made_anew ? makers[bucket] : HolderOf(state_.checkpoint.buckets[bucket].slot);
    if (made_anew) {
      configurations_.MakeAnew(bucket, holder, state_.checkpoint.snapshot);
    } else {
      configurations_.Restore(bucket, holder, state_.checkpoint.snapshot);
    }
    restores_.OnServed(bucket);  // what was lost before does not matter any more
    restores_.Touch(bucket, holder);
  }
}

// Advice, and when to look again.
void Placement::Plan(const std::vector<Spread::Server>& servers, TimePoint now) {
  spread_.Advise(servers, configurations_, now);
  all_served_ = true;
  for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
    all_served_ = all_served_ && configurations_.IsServed(bucket);
    if (const auto& learner = configurations_.At(bucket).learner) {
      restores_.Touch(bucket, *learner);
    }
  }
  at_checkpoint_ = at_checkpoint_ && !all_served_;
  if (all_served_ && !first_served_) {
    first_served_ = now;
  }
  for (const double seconds : failovers_.OnRecordsChanged(now)) {
    outbox_.Add(FailoverPhase{FailoverPhase::Kind::kCatchUp, seconds});
  }
  timer_.reset();
  for (const std::optional<TimePoint>& time :
       {takeovers_.NextTimer(), restores_.NextTimer(now), Spread::NextTimer(servers, now)}) {
    if (time && (!timer_ || *time < *timer_)) {
      timer_ = time;
    }
  }
  if (first_served_ && *first_served_ + kCopyTime > now &&
      (!timer_ || *first_served_ + kCopyTime < *timer_)) {
    timer_ = *first_served_ + kCopyTime;
  }
}

double Placement::OldestUnflushed(std::uint32_t slot) const {
  const auto found = unflushed_.find(slot);
  return found == unflushed_.end() ? 0 : found->second;
}

Holder Placement::HolderOf(std::uint32_t slot) const {
  return {.slot = slot, .incarnation = roster_.IncarnationOf({Role::kParameterServer, slot})};
}

std::vector<Spread::Server> Placement::Servers() const {
  std::vector<Spread::Server> servers;
  for (std::uint32_t slot = 0; slot < settings_.parameter_servers; ++slot) {
    const Roster::Slot& at = roster_.At({Role::kParameterServer, slot});
    const auto zone = zones_.find(at.node);
    servers.push_back({.holder = HolderOf(slot),
                       .running = at.liveness == Roster::Liveness::kRunning &&
                                  opened_[slot] == HolderOf(slot).incarnation,
                       .draining = draining_.contains(slot),
                       .node = at.node,
                       .zone = at.zone.empty() && zone != zones_.end() ? zone->second : at.zone,
                       .away_since = away_since_[slot]});
  }
  return servers;
}

Membership Placement::View() const {
  // Versions rise across restarts of the controller, because its term does.
  Membership view{.version = (state_.term << 32) | versions_,
                  .members = {},
                  .buckets = state_.buckets,
                  .part_owner = state_.part_owner,
                  .dead = state_.dead};
  for (const Roster::Slot& slot : roster_.slots()) {
    if (slot.liveness == Roster::Liveness::kRunning) {
      view.members.push_back({.id = slot.id,
                              .incarnation = roster_.IncarnationOf(slot.id),
                              .address = slot.address,
                              .replication_address = slot.replication_address});
    }
  }
  return view;
}

void Placement::PublishChanges() {
  if (changed_) {
    return Publish();
  }
  for (const std::uint32_t slot : std::exchange(outdated_, {})) {
    roster_.SendTo({Role::kParameterServer, slot}, View());
  }
}

void Placement::Publish() {
  changed_ = false;
  outdated_.clear();
  ++versions_;
  const Membership view = View();
  for (const Member& member : view.members) {
    roster_.SendTo(member.id, view);
  }
}

}  // namespace adamant::controller
