#include "services/parameter_server/core/replication/replica.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {
namespace {

constexpr auto kRepeatRelease = std::chrono::milliseconds(100);

}  // namespace

Replica::Replica(BucketId bucket, const Options& options, ReplicaHost& host)
    : bucket_(bucket),
      options_(options),
      host_(host),
      log_(options.logging),
      leading_(bucket,
               {.times = options.times, .max_log_bytes = options.max_log_bytes},
               host,
               configuration_,
               log_),
      following_(options.times.grace) {}

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
  heir_.reset();
  leading_.Clear();
  const bool primary = configuration.primary == options_.self;
  if (was_primary && !primary) {
    host_.Demoted(bucket_);
  }
  if (primary) {
    BecomePrimary(was_primary, now);
  } else if (configuration.Has(options_.self) && has_content_) {
    BecomeSecondary(now);
  } else {
    Leave();
  }
}

void Replica::BecomePrimary(bool was_primary, Clock::TimePoint now) {
  leading_.BeginEpoch(options_.self, now);
  if (!has_content_) {
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
  copy_ = 0;
  following_.Promise(now);
  if (leading_.peers().IsDead(configuration_.primary)) {
    ProposeTakeOver(false, now);
  }
}

void Replica::Leave() {
  if (role_ != Role::kNone) {
    host_.Clear(bucket_);
  }
  Forget();
  role_ = Role::kNone;
}

void Replica::Forget() {
  has_content_ = false;
  copy_ = 0;
  leading_.ForgetDurable();
  log_.Clear();
}

void Replica::Loaded(Clock::TimePoint now) {
  if (role_ != Role::kLoading) {
    return;
  }
  has_content_ = true;
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

bool Replica::LearnerWaits() const {
  const std::optional<Holder>& learner = configuration_.learner;
  const bool copying = leading_.peers().all().size() == configuration_.members.size();
  return learner.has_value() && FollowsAdvice() && !copying && !configuration_.Has(*learner) &&
         !leading_.peers().IsDead(*learner);
}

void Replica::FollowAdvice(Clock::TimePoint now) {
  if (proposals_.Binds(Proposal::Kind::kAdd) &&
      configuration_.learner != proposals_.binding()->subject && !proposals_.drop().has_value()) {
    return Drop(proposals_.binding()->subject, now);  // the controller will not add it any more
  }
  if (!FollowsAdvice()) {
    return;
  }
  const std::optional<Holder>& heir = configuration_.heir;
  if (heir.has_value() && role_ == Role::kServing && *heir != options_.self &&
      configuration_.Has(*heir) && !leading_.peers().IsDead(*heir)) {
    leading_.GiveUpCopy();
    role_ = Role::kDraining;
    heir_ = heir;
    next_release_ = now;
    return Release(now);
  }
  const std::optional<Holder>& leaver = configuration_.leaver;
  if (leaver.has_value() && *leaver != options_.self && configuration_.Has(*leaver) &&
      !proposals_.drop().has_value()) {
    return Drop(*leaver, now);
  }
  const Peer* const current = leading_.peers().FindLearner();
  if (current != nullptr && configuration_.learner != current->holder) {
    leading_.GiveUpCopy();
  }
  if (LearnerWaits() && now >= leading_.next_copy()) {
    leading_.BeginCopy(*configuration_.learner, now);
  }
}

// Once released the epoch is over for this primary, whatever the advice says later: the heir takes
// over, or falls silent and is dropped.
void Replica::Release(Clock::TimePoint now) {
  if (role_ == Role::kDraining && log_.entries().empty() && now >= next_release_) {
    next_release_ = now + kRepeatRelease;
    ADAMANT_FAILPOINT("replica/release");
    Send(*heir_, Released{});
  }
}

// --- Proposals

void Replica::Propose(Proposal::Kind kind,
                      const Holder& subject,
                      bool released,
                      Clock::TimePoint now) {
  host_.Propose(proposals_.Open({.bucket = bucket_,
                                 .epoch = configuration_.epoch,
                                 .kind = kind,
                                 .proposer = options_.self,
                                 .subject = subject,
                                 .last_lsn = prepared(),
                                 .released = released},
                                now));
}

void Replica::ProposeTakeOver(bool released, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_take_over");
  if (role_ == Role::kSecondary) {
    failover_ = {.detect = now - following_.last_beacon()};
  }
  role_ = Role::kProposing;
  Propose(Proposal::Kind::kTakeOver, {}, released, now);
}

void Replica::Drop(const Holder& holder, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  Propose(Proposal::Kind::kDrop, holder, false, now);
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
    Release(now);
    FollowAdvice(now);
  }
  if (now >= proposals_.repeat_at()) {
    RepeatProposals(now);
  }
}

void Replica::RepeatProposals(Clock::TimePoint now) {
  proposals_.RepeatAfter(now);
  proposals_.SetLast(prepared());
  for (const auto* proposal : {&proposals_.binding(), &proposals_.drop()}) {
    if (proposal->has_value()) {
      host_.Propose(**proposal);
    }
  }
}

Clock::TimePoint Replica::NextTick() const {
  Clock::TimePoint next = Clock::TimePoint::max();
  if (proposals_.any()) {
    next = proposals_.repeat_at();
  }
  if (role_ == Role::kSecondary) {
    next = std::min(next, following_.promised_until());
  }
  if (!IsPrimary()) {
    return next;
  }
  next = std::min(next, leading_.NextCheck(proposals_.drop().has_value()));
  if (role_ == Role::kDraining && log_.entries().empty()) {
    next = std::min(next, next_release_);
  }
  if (LearnerWaits()) {
    next = std::min(next, leading_.next_copy());
  }
  return next;
}

ReplicaStatus Replica::status() const {
  return {.epoch = configuration_.epoch,
          .committed = committed(),
          .prepared = prepared(),
          .slowest = leading_.peers().AckedByAll(log_.persisted())};
}

void Replica::Send(const Holder& to, decltype(PeerMessage::kind) kind) {
  host_.Send(to, {.bucket = bucket_, .epoch = configuration_.epoch, .kind = std::move(kind)});
}

// --- Entries

// A bucket that is not known to have been created would be created anew if this server died.
bool Replica::CanAppend() const {
  return role_ == Role::kServing && configuration_.created &&
         configuration_.members.size() >= options_.min_in_sync &&
         log_.bytes() < options_.max_log_bytes && !leading_.peers().AnyIsFull();
}

Lsn Replica::Append(Entry entry, Clock::TimePoint now) {
  ADAMANT_CHECK(CanAppend(), "the primary was asked whether it may append");
  entry.lsn = prepared() + 1;
  entry.origin = configuration_.epoch;
  const Lsn lsn = entry.lsn;
  ADAMANT_FAILPOINT("replica/append");
  const EntryPtr kept = std::make_shared<const Entry>(std::move(entry));
  KeepEntry(kept);
  leading_.OnAppended(*kept, now);
  TryCommit(now);
  return lsn;
}

// Takes an entry into the log, behind the others.
void Replica::KeepEntry(const EntryPtr& entry) {
  const std::uint64_t ticket = log_.Keep(entry);
  if (ticket != 0) {
    host_.Persist(bucket_, entry, ticket);
  }
}

// --- Commit

void Replica::TryCommit(Clock::TimePoint now) {
  if (!IsPrimary() || role_ == Role::kLoading) {
    return;
  }
  if (configuration_.members.size() >= options_.min_in_sync && leading_.peers().LeaseHolds(now)) {
    const Lsn limit = leading_.peers().AckedByAll(log_.persisted());
    while (committed() < limit) {
      CommitOne();
    }
  }
  ServeIfReconciled(now);
  Release(now);
  TryAdd(now);
}

void Replica::CommitOne() {
  ADAMANT_FAILPOINT("replica/commit");
  host_.Commit(bucket_, log_.CommitNext());
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
  if (!log_.OnPersisted(ticket)) {
    return;
  }
  if (IsPrimary()) {
    TryCommit(now);
  } else if (following_.acknowledges()) {
    Acknowledge(false);
    CommitWhatIsKnown();
  }
}

// --- What is on the disks

void Replica::Flushed(Lsn lsn) {
  log_.OnFlushed(lsn);
  if (IsPrimary()) {
    leading_.RaiseDurable();
  } else if (following_.acknowledges() && following_.TakeFlushWanted()) {
    Acknowledge(false);
  }
}

void Replica::OnConnected(const Holder& holder, Clock::TimePoint now) {
  if (Follows(holder) && role_ != Role::kProposing && following_.beacon_sent().has_value()) {
    return AnswerBeacon();
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
    Propose(Proposal::Kind::kAdd, learner->holder, false, now);
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

// The first word of the primary in this epoch. Who lacks what it takes for granted cannot be a
// member, and must never take over.
void Replica::StartEpochAt(Lsn base) {
  if (following_.acknowledges()) {
    return;
  }
  if (base > prepared()) {
    return Leave();
  }
  following_.Take(std::max(base, committed()));
}

void Replica::Handle(const Holder& from, const Beacon& beacon, Clock::TimePoint now) {
  if (!Follows(from) || role_ == Role::kProposing) {
    return;
  }
  StartEpochAt(beacon.base);
  if (!following_.acknowledges()) {
    return;
  }
  ADAMANT_FAILPOINT("replica/promise");
  following_.OnBeacon(beacon, now);
  LearnCommitted(beacon.committed);
  AnswerBeacon();
}

// Again when the way to the primary opens after its beacon came: the next one may be long in
// coming.
void Replica::AnswerBeacon() {
  Send(configuration_.primary,
       BeaconAnswer{.sent = *following_.beacon_sent(),
                    .acked = following_.Acked(log_.persisted()),
                    .copy = copy_,
                    .flushed = log_.OnDisk()});
}

void Replica::Handle(const Holder& from, const Prepare& prepare, Clock::TimePoint /*now*/) {
  if (!Follows(from)) {
    return;
  }
  StartEpochAt(prepare.base);
  if (!following_.acknowledges()) {
    return;
  }
  const Lsn next = following_.last() + 1;
  const bool gap = prepare.entry->lsn > next;
  if (prepare.entry->lsn == next) {
    ADAMANT_FAILPOINT("replica/accept");
    Accept(prepare.entry);
  }
  LearnCommitted(prepare.committed);
  Acknowledge(gap);
}

void Replica::Accept(const EntryPtr& entry) {
  following_.Take(entry->lsn);
  if (entry->lsn <= committed() || log_.Has(*entry)) {
    return;
  }
  log_.CutFrom(entry->lsn);
  KeepEntry(entry);
}

void Replica::Acknowledge(bool gap) {
  ADAMANT_FAILPOINT("replica/acknowledge");
  Send(configuration_.primary,
       PrepareAck{.acked = following_.Acked(log_.persisted()),
                  .gap = gap,
                  .copy = copy_,
                  .flushed = log_.OnDisk()});
}

void Replica::LearnCommitted(Lsn committed) {
  following_.HearCommitted(committed);
  CommitWhatIsKnown();
}

void Replica::CommitWhatIsKnown() {
  if (!has_content_) {
    return;
  }
  const Lsn limit = following_.CommitLimit(log_.persisted());
  while (committed() < limit) {
    CommitOne();
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
  const bool begun = role_ == Role::kLearner && begin.copy <= copy_;
  if (from != configuration_.primary || configuration_.Has(options_.self) || begun) {
    return;
  }
  ADAMANT_FAILPOINT("copy/learn");
  Leave();
  role_ = Role::kLearner;
  copy_ = begin.copy;
  log_.BeginAt(begin.base);
  following_.BeginCopy(begin.base);
  host_.Learn(bucket_, begin);
}

void Replica::Installed(std::uint64_t copy, Clock::TimePoint /*now*/) {
  if (role_ == Role::kLearner && copy == copy_) {
    has_content_ = true;
    CommitWhatIsKnown();
  }
}

}  // namespace adamant::parameter_server
