#include "services/parameter_server/core/replication/replica.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

Replica::Replica(BucketId bucket, const Options& options, ReplicaHost& host)
    : bucket_(bucket),
      options_(options),
      host_(host),
      local_(bucket, options.logging, host),
      leading_(bucket,
               {.times = options.times, .max_log_bytes = options.max_log_bytes},
               host,
               configuration_,
               local_.log()),
      following_(bucket, options.times.grace, host, configuration_, local_),
      proposals_(bucket, options.self, host, configuration_, local_.log()),
      advice_(options.self, configuration_, leading_.peers(), proposals_),
      handover_(bucket, host, configuration_, local_.log()) {}

void Replica::OnConfiguration(const Configuration& configuration, Clock::TimePoint now) {
  if (configuration.epoch > configuration_.epoch) {
    Adopt(configuration, now);
  } else if (configuration.epoch == configuration_.epoch && configuration.epoch > 0) {
    configuration_ = configuration;  // the same, perhaps with other advice
    FollowAdvice(now);
  }
}

void Replica::Adopt(const Configuration& configuration, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/adopt");
  const bool was_primary = IsPrimary();
  if (proposals_.Binds(Proposal::Kind::kTakeOver) && configuration.primary == options_.self) {
    failover_.replace = now - proposals_.opened_at();
  }
  leading_.GiveUpCopy();
  if (configuration.generation != configuration_.generation) {
    Leave();  // all members were lost: what counts is on a disk
  }
  configuration_ = configuration;
  adopted_at_ = now;
  proposals_.Clear();
  following_.BeginEpoch();
  handover_.Clear();
  leading_.Clear();
  const bool primary = configuration.primary == options_.self;
  if (was_primary && !primary) {
    host_.Demoted(bucket_);
  }
  if (primary) {
    BecomePrimary(was_primary, now);
  } else if (configuration.Has(options_.self) && local_.has_content()) {
    BecomeSecondary(now);
  } else {
    Leave();
  }
}

void Replica::BecomePrimary(bool was_primary, Clock::TimePoint now) {
  leading_.BeginEpoch(options_.self, now);
  if (!local_.has_content()) {
    role_ = Role::kLoading;
    host_.Load(bucket_, !configuration_.created);
    return;
  }
  if (!was_primary) {
    ADAMANT_FAILPOINT("replica/reconcile");
    role_ = Role::kReconciling;
    promotion_ = prepared();
  } else if (role_ == Role::kDraining) {
    role_ = Role::kServing;  // the heir is gone
  }
  leading_.SendBeacons(now);
  TryCommit(now);
  FollowAdvice(now);
}

void Replica::BecomeSecondary(Clock::TimePoint now) {
  role_ = Role::kSecondary;
  local_.EndCopy();
  following_.Promise(now);
  if (leading_.peers().IsDead(configuration_.primary)) {
    ProposeTakeOver(false, now);
  }
}

void Replica::Leave() {
  if (role_ != Role::kNone) {
    host_.Clear(bucket_);
  }
  local_.Clear();
  leading_.ForgetDurable();
  role_ = Role::kNone;
}

void Replica::Loaded(Clock::TimePoint now) {
  if (role_ != Role::kLoading) {
    return;
  }
  local_.SetHasContent();
  role_ = Role::kReconciling;
  promotion_ = 0;
  leading_.SendBeacons(now);
  ServeIfReconciled(now);
  FollowAdvice(now);
}

// --- Advice

bool Replica::FollowsAdvice() const {
  return (role_ == Role::kServing || role_ == Role::kReconciling) &&
         !proposals_.binding().has_value();
}

void Replica::FollowAdvice(Clock::TimePoint now) {
  if (const std::optional<Holder> not_to_add = advice_.NotToAdd()) {
    return Drop(*not_to_add, now);  // the controller will not add it any more
  }
  if (!FollowsAdvice()) {
    return;
  }
  if (const std::optional<Holder> heir = advice_.Heir(); heir && role_ == Role::kServing) {
    leading_.GiveUpCopy();
    role_ = Role::kDraining;
    return handover_.Begin(*heir, now);
  }
  if (const std::optional<Holder> leaver = advice_.Leaver()) {
    return Drop(*leaver, now);
  }
  if (advice_.GivesUpCopy()) {
    leading_.GiveUpCopy();
  }
  if (const std::optional<Holder> learner = advice_.Learner();
      learner && now >= leading_.next_copy()) {
    leading_.BeginCopy(*learner, now);
  }
}

// --- Proposals

void Replica::ProposeTakeOver(bool released, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_take_over");
  if (role_ == Role::kSecondary) {
    failover_ = {.detect = now - following_.last_beacon()};
  }
  role_ = Role::kProposing;
  proposals_.Propose(Proposal::Kind::kTakeOver, {}, released, now);
}

void Replica::Drop(const Holder& holder, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  proposals_.Propose(Proposal::Kind::kDrop, holder, false, now);
}

// --- Deaths and time

void Replica::OnDead(const std::vector<Holder>& dead, Clock::TimePoint now) {
  leading_.peers().SetDead(dead);
  if (IsPrimary()) {
    CheckPeers(now);
  } else if (role_ == Role::kSecondary && leading_.peers().IsDead(configuration_.primary)) {
    ProposeTakeOver(false, now);
  }
}

void Replica::Tick(Clock::TimePoint now) {
  if (role_ == Role::kSecondary && now >= following_.promised_until()) {
    return ProposeTakeOver(false, now);
  }
  if (IsPrimary()) {
    if (now >= leading_.next_beacon()) {
      role_ == Role::kLoading ? leading_.PostponeBeacons(now) : leading_.SendBeacons(now);
    }
    CheckPeers(now);
    leading_.RaiseDurable();  // who held it may have gone
    handover_.Release(now);
    FollowAdvice(now);
  }
  proposals_.Repeat(now);
}

Clock::TimePoint Replica::NextTick() const {
  Clock::TimePoint next = proposals_.NextRepeat();
  if (role_ == Role::kSecondary) {
    next = std::min(next, following_.promised_until());
  }
  if (!IsPrimary()) {
    return next;
  }
  next =
      std::min({next, leading_.NextCheck(proposals_.drop().has_value()), handover_.NextRelease()});
  if (FollowsAdvice() && advice_.Learner().has_value()) {
    next = std::min(next, leading_.next_copy());
  }
  return next;
}

ReplicaStatus Replica::status() const {
  return {.epoch = configuration_.epoch,
          .committed = committed(),
          .prepared = prepared(),
          .slowest = leading_.peers().AckedByAll(local_.log().persisted())};
}

// --- Entries

// A bucket that is not known to have been created would be created anew if this server died.
bool Replica::CanAppend() const {
  return role_ == Role::kServing && configuration_.created &&
         configuration_.members.size() >= options_.min_in_sync &&
         local_.log().bytes() < options_.max_log_bytes && !leading_.peers().AnyIsFull();
}

Lsn Replica::Append(Entry entry, Clock::TimePoint now) {
  ADAMANT_CHECK(CanAppend(), "the primary was asked whether it may append");
  entry.lsn = prepared() + 1;
  entry.origin = configuration_.epoch;
  const Lsn lsn = entry.lsn;
  ADAMANT_FAILPOINT("replica/append");
  const EntryPtr kept = std::make_shared<const Entry>(std::move(entry));
  local_.Keep(kept);
  leading_.OnAppended(*kept, now);
  TryCommit(now);
  return lsn;
}

// --- Commit

void Replica::TryCommit(Clock::TimePoint now) {
  if (!IsPrimary() || role_ == Role::kLoading) {
    return;
  }
  if (configuration_.members.size() >= options_.min_in_sync && leading_.peers().LeaseHolds(now)) {
    local_.CommitUpTo(leading_.peers().AckedByAll(local_.log().persisted()));
  }
  ServeIfReconciled(now);
  handover_.Release(now);
  TryAdd(now);
}

void Replica::ServeIfReconciled(Clock::TimePoint now) {
  if (role_ == Role::kReconciling && committed() >= promotion_) {
    ADAMANT_FAILPOINT("replica/serve");
    role_ = Role::kServing;
    failover_.reconcile = now - adopted_at_;
    host_.Serving(bucket_);
    FollowAdvice(now);
  }
}

bool Replica::CanRead(Clock::TimePoint now) const {
  return role_ == Role::kServing && leading_.peers().LeaseHolds(now);
}

void Replica::Persisted(std::uint64_t ticket, Clock::TimePoint now) {
  if (local_.log().OnPersisted(ticket)) {
    IsPrimary() ? TryCommit(now) : following_.OnPersisted();
  }
}

// --- What is on the disks

void Replica::Flushed(Lsn lsn) {
  local_.log().OnFlushed(lsn);
  IsPrimary() ? leading_.RaiseDurable() : following_.OnFlushed();
}

void Replica::OnConnected(const Holder& holder, Clock::TimePoint now) {
  if (Follows(holder) && role_ != Role::kProposing) {
    return following_.OnConnected();
  }
  if (IsPrimary() && role_ != Role::kLoading && leading_.OnConnected(holder, now)) {
    FollowAdvice(now);
  }
}

void Replica::CheckPeers(Clock::TimePoint now) {
  leading_.SendAgain(now);
  leading_.CheckCopy(now);
  CheckDrop(now);
}

void Replica::CheckDrop(Clock::TimePoint now) {
  if (const Peer* const lost = leading_.peers().FindLost(prepared(), now)) {
    if (!proposals_.drop().has_value() || proposals_.drop()->subject != lost->holder) {
      Drop(lost->holder, now);
    }
  } else if (const auto& drop = proposals_.drop(); drop.has_value() &&
                                                   configuration_.Has(drop->subject) &&
                                                   configuration_.leaver != drop->subject) {
    proposals_.WithdrawDrop();  // it is back
  }
}

void Replica::TryAdd(Clock::TimePoint now) {
  Peer* const learner = proposals_.binding().has_value() ? nullptr : leading_.FindToAdd(promotion_);
  if (learner != nullptr) {
    ADAMANT_FAILPOINT("replica/propose_add");
    learner->proposed = true;
    proposals_.Propose(Proposal::Kind::kAdd, learner->holder, false, now);
  }
}

void Replica::Copied(std::uint64_t copy, Clock::TimePoint now) {
  if (leading_.OnCopied(copy, now)) {
    TryAdd(now);
  }
}

void Replica::Handle(const Holder& from, const PrepareAck& ack, Clock::TimePoint now) {
  if (IsPrimary() && leading_.OnAcknowledged(from, ack, now)) {
    TryCommit(now);
  }
}

void Replica::Handle(const Holder& from, const BeaconAnswer& answer, Clock::TimePoint now) {
  if (IsPrimary() && leading_.OnAnswered(from, answer, now)) {
    TryCommit(now);
  }
}

void Replica::Handle(const Holder& from, const CopyAck& ack, Clock::TimePoint now) {
  if (IsPrimary()) {
    leading_.OnCopyAcknowledged(from, ack, now);
  }
}

void Replica::RequestFlush(Clock::TimePoint now) {
  if (IsPrimary()) {
    leading_.RequestFlush(now);
  }
}

// --- What the secondary and the learner do, as the primary sends

void Replica::OnMessage(const Holder& from, const PeerMessage& message, Clock::TimePoint now) {
  if (const auto* beacon = std::get_if<Beacon>(&message.kind);
      beacon != nullptr && message.epoch > configuration_.epoch && beacon->primary == from) {
    Adopt({.epoch = message.epoch,
           .generation = beacon->generation,
           .primary = beacon->primary,
           .members = beacon->members,
           .created = true},
          now);
  }
  if (const auto* begin = std::get_if<CopyBegin>(&message.kind);
      begin != nullptr && message.epoch > configuration_.epoch) {
    Adopt(
        {.epoch = message.epoch, .generation = begin->generation, .primary = from, .created = true},
        now);
  }
  if (message.epoch == configuration_.epoch) {
    std::visit([&](const auto& kind) { Handle(from, kind, now); }, message.kind);
  }
}

bool Replica::Follows(const Holder& from) const {
  return from == configuration_.primary &&
         (role_ == Role::kSecondary || role_ == Role::kProposing || role_ == Role::kLearner);
}

void Replica::Handle(const Holder& from, const Beacon& beacon, Clock::TimePoint now) {
  if (!Follows(from) || role_ == Role::kProposing) {
    return;
  }
  following_.HearsFrom(beacon.base) ? following_.OnBeacon(beacon, now) : Leave();
}

void Replica::Handle(const Holder& from, const Prepare& prepare, Clock::TimePoint /*now*/) {
  if (Follows(from)) {
    following_.HearsFrom(prepare.base) ? following_.OnPrepare(prepare) : Leave();
  }
}

void Replica::Handle(const Holder& from, const Released& /*released*/, Clock::TimePoint now) {
  if (from == configuration_.primary &&
      (role_ == Role::kSecondary ||
       (role_ == Role::kProposing && !proposals_.binding()->released))) {
    ADAMANT_FAILPOINT("replica/inherit");
    ProposeTakeOver(true, now);
  }
}

void Replica::Handle(const Holder& from, const CopyBegin& begin, Clock::TimePoint /*now*/) {
  const bool begun = role_ == Role::kLearner && begin.copy <= local_.copy();
  if (from != configuration_.primary || configuration_.Has(options_.self) || begun) {
    return;
  }
  ADAMANT_FAILPOINT("copy/learn");
  Leave();
  role_ = Role::kLearner;
  local_.BeginCopy(begin.copy, begin.base);
  following_.BeginCopy(begin.base);
  host_.Learn(bucket_, begin);
}

void Replica::Installed(std::uint64_t copy, Clock::TimePoint /*now*/) {
  if (role_ == Role::kLearner && copy == local_.copy()) {
    local_.SetHasContent();
    following_.CommitWhatIsKnown();
  }
}

}  // namespace adamant::parameter_server
