#include "services/parameter_server/core/replication/replica.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/seconds.h"

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
      hint_(options.self, configuration_, leading_.peers(), proposals_),
      transfer_(bucket, host, configuration_, local_.log()) {}

void Replica::OnConfiguration(const Configuration& configuration, Clock::TimePoint now) {
  if (configuration.version > configuration_.version) {
    Adopt(configuration, now);
  } else if (configuration.version == configuration_.version && configuration.version > 0) {
    configuration_ = configuration;  // the same, perhaps with other hints
    FollowHint(now);
  }
}

void Replica::Adopt(const Configuration& configuration, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/adopt");
  const bool was_primary = IsPrimary();
  if (proposals_.Binds(Proposal::Kind::kPromote) && configuration.primary == options_.self) {
    failover_.replace_seconds = Seconds(now - proposals_.opened_at());
  }
  leading_.GiveUpCopy();
  if (configuration.generation != configuration_.generation) {
    Leave();  // all replicas were lost: what counts is on a disk
  }
  configuration_ = configuration;
  adopted_at_ = now;
  proposals_.Clear();
  following_.BeginConfiguration();
  transfer_.Clear();
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
  leading_.BeginConfiguration(options_.self, now);
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
    role_ = Role::kServing;  // the successor is gone
  }
  leading_.SendBeacons(now);
  TryCommit(now);
  FollowHint(now);
}

void Replica::BecomeSecondary(Clock::TimePoint now) {
  role_ = Role::kSecondary;
  local_.EndCopy();
  following_.Promise(now);
  if (leading_.peers().IsDead(configuration_.primary)) {
    ProposePromotion(false, now);
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
  FollowHint(now);
}

// --- PlacementPolicy

bool Replica::FollowsAdvice() const {
  return (role_ == Role::kServing || role_ == Role::kReconciling) &&
         !proposals_.binding().has_value();
}

void Replica::FollowHint(Clock::TimePoint now) {
  if (const std::optional<ServerId> not_to_add = hint_.NotToAdd()) {
    return Drop(*not_to_add, now);  // the controller will not add it any more
  }
  if (!FollowsAdvice()) {
    return;
  }
  if (const std::optional<ServerId> successor = hint_.Successor();
      successor && role_ == Role::kServing) {
    leading_.GiveUpCopy();
    role_ = Role::kDraining;
    return transfer_.Begin(*successor, now);
  }
  if (const std::optional<ServerId> departing = hint_.Departing()) {
    return Drop(*departing, now);
  }
  if (hint_.GivesUpCopy()) {
    leading_.GiveUpCopy();
  }
  if (const std::optional<ServerId> learner = hint_.Learner();
      learner && now >= leading_.next_copy()) {
    leading_.BeginCopy(*learner, now);
  }
}

// --- Proposer

void Replica::ProposePromotion(bool released, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_promotion");
  if (role_ == Role::kSecondary) {
    failover_ = {.detect_seconds = Seconds(now - following_.last_beacon())};
  }
  role_ = Role::kProposing;
  proposals_.Propose(Proposal::Kind::kPromote, {}, released, now);
}

void Replica::Drop(const ServerId& server, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  proposals_.Propose(Proposal::Kind::kDrop, server, false, now);
}

// --- Deaths and time

void Replica::OnDead(const std::vector<ServerId>& dead, Clock::TimePoint now) {
  leading_.peers().SetDead(dead);
  if (IsPrimary()) {
    CheckPeers(now);
  } else if (role_ == Role::kSecondary && leading_.peers().IsDead(configuration_.primary)) {
    ProposePromotion(false, now);
  }
}

void Replica::Tick(Clock::TimePoint now) {
  if (role_ == Role::kSecondary && now >= following_.promised_until()) {
    return ProposePromotion(false, now);
  }
  if (IsPrimary()) {
    if (now >= leading_.next_beacon()) {
      role_ == Role::kLoading ? leading_.PostponeBeacons(now) : leading_.SendBeacons(now);
    }
    CheckPeers(now);
    leading_.RaiseDurable();  // who held it may have gone
    transfer_.Release(now);
    FollowHint(now);
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
      std::min({next, leading_.NextCheck(proposals_.drop().has_value()), transfer_.NextRelease()});
  if (FollowsAdvice() && hint_.Learner().has_value()) {
    next = std::min(next, leading_.next_copy());
  }
  return next;
}

ReplicaStatus Replica::status() const {
  return {.configuration_version = configuration_.version,
          .committed = committed(),
          .prepared = prepared(),
          .slowest = leading_.peers().AckedByAll(local_.log().persisted())};
}

// --- Entries

// A bucket that is not known to have been created would be created anew if this server died.
bool Replica::CanAppend() const {
  return role_ == Role::kServing && configuration_.created &&
         configuration_.replicas.size() >= options_.min_in_sync &&
         local_.log().bytes() < options_.max_log_bytes && !leading_.peers().AnyIsFull();
}

Lsn Replica::Append(Entry entry, Clock::TimePoint now) {
  ADAMANT_CHECK(CanAppend(), "the primary was asked whether it may append");
  entry.lsn = prepared() + 1;
  entry.origin = configuration_.version;
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
  if (configuration_.replicas.size() >= options_.min_in_sync && leading_.peers().LeaseHolds(now)) {
    local_.CommitUpTo(leading_.peers().AckedByAll(local_.log().persisted()));
  }
  ServeIfReconciled(now);
  transfer_.Release(now);
  TryAdd(now);
}

void Replica::ServeIfReconciled(Clock::TimePoint now) {
  if (role_ == Role::kReconciling && committed() >= promotion_) {
    ADAMANT_FAILPOINT("replica/serve");
    role_ = Role::kServing;
    failover_.reconcile_seconds = Seconds(now - adopted_at_);
    host_.Serving(bucket_);
    FollowHint(now);
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

void Replica::OnConnected(const ServerId& server, Clock::TimePoint now) {
  if (Follows(server) && role_ != Role::kProposing) {
    return following_.OnConnected();
  }
  if (IsPrimary() && role_ != Role::kLoading && leading_.OnConnected(server, now)) {
    FollowHint(now);
  }
}

void Replica::CheckPeers(Clock::TimePoint now) {
  leading_.SendAgain(now);
  leading_.CheckCopy(now);
  CheckDrop(now);
}

void Replica::CheckDrop(Clock::TimePoint now) {
  if (const Peer* const lost = leading_.peers().FindLost(prepared(), now)) {
    if (!proposals_.drop().has_value() || proposals_.drop()->subject != lost->server) {
      Drop(lost->server, now);
    }
  } else if (const auto& drop = proposals_.drop(); drop.has_value() &&
                                                   configuration_.Has(drop->subject) &&
                                                   configuration_.departing != drop->subject) {
    proposals_.WithdrawDrop();  // it is back
  }
}

void Replica::TryAdd(Clock::TimePoint now) {
  Peer* const learner = proposals_.binding().has_value() ? nullptr : leading_.FindToAdd(promotion_);
  if (learner != nullptr) {
    ADAMANT_FAILPOINT("replica/propose_add");
    learner->proposed = true;
    proposals_.Propose(Proposal::Kind::kAdd, learner->server, false, now);
  }
}

void Replica::Copied(std::uint64_t copy, Clock::TimePoint now) {
  if (leading_.OnCopied(copy, now)) {
    TryAdd(now);
  }
}

void Replica::Handle(const ServerId& from, const PrepareAck& ack, Clock::TimePoint now) {
  if (IsPrimary() && leading_.OnAcknowledged(from, ack, now)) {
    TryCommit(now);
  }
}

void Replica::Handle(const ServerId& from, const BeaconAnswer& answer, Clock::TimePoint now) {
  if (IsPrimary() && leading_.OnAnswered(from, answer, now)) {
    TryCommit(now);
  }
}

void Replica::Handle(const ServerId& from, const CopyAck& ack, Clock::TimePoint now) {
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

void Replica::OnMessage(const ServerId& from, const PeerMessage& message, Clock::TimePoint now) {
  if (const auto* beacon = std::get_if<Beacon>(&message.kind);
      beacon != nullptr && message.configuration_version > configuration_.version &&
      beacon->primary == from) {
    Adopt({.version = message.configuration_version,
           .generation = beacon->generation,
           .primary = beacon->primary,
           .replicas = beacon->replicas,
           .created = true},
          now);
  }
  if (const auto* begin = std::get_if<CopyBegin>(&message.kind);
      begin != nullptr && message.configuration_version > configuration_.version) {
    Adopt({.version = message.configuration_version,
           .generation = begin->generation,
           .primary = from,
           .created = true},
          now);
  }
  if (message.configuration_version == configuration_.version) {
    std::visit([&](const auto& kind) { Handle(from, kind, now); }, message.kind);
  }
}

bool Replica::Follows(const ServerId& from) const {
  return from == configuration_.primary &&
         (role_ == Role::kSecondary || role_ == Role::kProposing || role_ == Role::kLearner);
}

void Replica::Handle(const ServerId& from, const Beacon& beacon, Clock::TimePoint now) {
  if (!Follows(from) || role_ == Role::kProposing) {
    return;
  }
  following_.HearsFrom(beacon.base) ? following_.OnBeacon(beacon, now) : Leave();
}

void Replica::Handle(const ServerId& from, const Prepare& prepare, Clock::TimePoint /*now*/) {
  if (Follows(from)) {
    following_.HearsFrom(prepare.base) ? following_.OnPrepare(prepare) : Leave();
  }
}

void Replica::Handle(const ServerId& from, const Released& /*released*/, Clock::TimePoint now) {
  if (from == configuration_.primary &&
      (role_ == Role::kSecondary ||
       (role_ == Role::kProposing && !proposals_.binding()->released))) {
    ADAMANT_FAILPOINT("replica/inherit");
    ProposePromotion(true, now);
  }
}

void Replica::Handle(const ServerId& from, const CopyBegin& begin, Clock::TimePoint /*now*/) {
  const bool begun = role_ == Role::kLearner && begin.copy <= local_.copy();
  if (from != configuration_.primary || configuration_.Has(options_.self) || begun) {
    return;
  }
  ADAMANT_FAILPOINT("copy/learn");
  Leave();
  role_ = Role::kLearner;
  // An earlier program does not say whose entry the base is: nobody's can be of a later version.
  const bool known = begin.base_origin != 0 || begin.base == 0;
  local_.BeginCopy(begin.copy, begin.base, known ? begin.base_origin : configuration_.version);
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
