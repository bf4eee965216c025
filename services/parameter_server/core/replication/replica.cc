#include "services/parameter_server/core/replication/replica.h"

#include <algorithm>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/failpoint.h"

// Configurations: what a record makes of this replica, and what follows from deaths and time.
namespace adamant::parameter_server {
namespace {

constexpr auto kRepeatProposal = std::chrono::milliseconds(500);
constexpr auto kRepeatRelease = std::chrono::milliseconds(100);

}  // namespace

Replica::Replica(BucketId bucket, const Options& options, ReplicaHost& host)
    : bucket_(bucket), options_(options), host_(host) {}

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
  const bool took_over = proposal_.has_value() && proposal_->kind == Proposal::Kind::kTakeOver &&
                         configuration.primary == options_.self;
  if (took_over) {
    failover_.replace = now - proposed_at_;
  }
  GiveUpCopy();
  if (configuration.generation != configuration_.generation) {
    Leave();  // all members were lost: what counts is on a disk
  }
  configuration_ = configuration;
  adopted_at_ = now;
  proposal_.reset();
  drop_.reset();
  acked_.reset();
  beacon_sent_.reset();
  known_committed_ = 0;
  heir_.reset();
  flush_wanted_ = false;
  peers_.clear();
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
  for (const Holder& member : configuration_.members) {
    if (member != options_.self) {
      peers_.push_back({.holder = member,
                        .acked = committed_,
                        .sent = committed_,
                        .heard = now,
                        .progress_at = now});
    }
  }
  base_ = committed_;
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
  SendBeacons(now);
  TryCommit(now);
  FollowAdvice(now);
}

void Replica::BecomeSecondary(Clock::TimePoint now) {
  role_ = Role::kSecondary;
  copy_ = 0;
  promised_until_ = now + options_.times.grace;
  last_beacon_ = now;
  if (IsDead(configuration_.primary)) {
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
  committed_ = 0;
  persisted_ = 0;
  changed_ = 0;
  first_unflushed_ = 0;
  flushed_ = 0;
  durable_ = 0;
  storing_.clear();
  log_.clear();
  log_bytes_ = 0;
}

void Replica::Loaded(Clock::TimePoint now) {
  if (role_ != Role::kLoading) {
    return;
  }
  has_content_ = true;
  role_ = Role::kReconciling;
  promotion_ = 0;
  SendBeacons(now);
  ServeIfReconciled(now);
  FollowAdvice(now);
}

// --- Advice

bool Replica::FollowsAdvice() const {
  return (role_ == Role::kServing || role_ == Role::kReconciling) && !proposal_.has_value();
}

bool Replica::LearnerWaits() const {
  const std::optional<Holder>& learner = configuration_.learner;
  const bool copying = peers_.size() == configuration_.members.size();
  return learner.has_value() && FollowsAdvice() && !copying && !configuration_.Has(*learner) &&
         !IsDead(*learner);
}

void Replica::FollowAdvice(Clock::TimePoint now) {
  if (proposal_.has_value() && proposal_->kind == Proposal::Kind::kAdd &&
      configuration_.learner != proposal_->subject && !drop_.has_value()) {
    return Drop(proposal_->subject, now);  // the controller will not add it any more
  }
  if (!FollowsAdvice()) {
    return;
  }
  const std::optional<Holder>& heir = configuration_.heir;
  if (heir.has_value() && role_ == Role::kServing && *heir != options_.self &&
      configuration_.Has(*heir) && !IsDead(*heir)) {
    GiveUpCopy();
    role_ = Role::kDraining;
    heir_ = heir;
    next_release_ = now;
    return Release(now);
  }
  const std::optional<Holder>& leaver = configuration_.leaver;
  if (leaver.has_value() && *leaver != options_.self && configuration_.Has(*leaver) &&
      !drop_.has_value()) {
    return Drop(*leaver, now);
  }
  const Peer* const current = FindLearner();
  if (current != nullptr && configuration_.learner != current->holder) {
    GiveUpCopy();
  }
  if (LearnerWaits() && now >= next_copy_) {
    BeginCopy(*configuration_.learner, now);
  }
}

// Once released the epoch is over for this primary, whatever the advice says later: the heir takes
// over, or falls silent and is dropped.
void Replica::Release(Clock::TimePoint now) {
  if (role_ == Role::kDraining && log_.empty() && now >= next_release_) {
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
  std::optional<Proposal>& proposal = kind == Proposal::Kind::kDrop ? drop_ : proposal_;
  proposal = {.bucket = bucket_,
              .epoch = configuration_.epoch,
              .kind = kind,
              .proposer = options_.self,
              .subject = subject,
              .last_lsn = prepared(),
              .released = released};
  proposed_at_ = now;
  repeat_at_ = now + kRepeatProposal;
  host_.Propose(*proposal);
}

void Replica::ProposeTakeOver(bool released, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_take_over");
  if (role_ == Role::kSecondary) {
    failover_ = {.detect = now - last_beacon_};
  }
  role_ = Role::kProposing;
  Propose(Proposal::Kind::kTakeOver, {}, released, now);
}

void Replica::Drop(const Holder& holder, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  Propose(Proposal::Kind::kDrop, holder, false, now);
}

// --- Deaths and time

bool Replica::IsDead(const Holder& holder) const {
  return std::ranges::find(dead_, holder) != dead_.end();
}

void Replica::OnDead(const std::vector<Holder>& dead, Clock::TimePoint now) {
  dead_ = dead;
  if (IsPrimary()) {
    CheckPeers(now);
  } else if (role_ == Role::kSecondary && IsDead(configuration_.primary)) {
    ProposeTakeOver(false, now);
  }
}

void Replica::Tick(Clock::TimePoint now) {
  if (role_ == Role::kSecondary && now >= promised_until_) {
    return ProposeTakeOver(false, now);
  }
  if (IsPrimary()) {
    if (now >= next_beacon_) {
      SendBeacons(now);
    }
    CheckPeers(now);
    RaiseDurable();  // who held it may have gone
    Release(now);
    FollowAdvice(now);
  }
  if (now >= repeat_at_) {
    RepeatProposals(now);
  }
}

void Replica::RepeatProposals(Clock::TimePoint now) {
  repeat_at_ = now + kRepeatProposal;
  if (proposal_.has_value()) {
    proposal_->last_lsn = prepared();
    host_.Propose(*proposal_);
  }
  if (drop_.has_value()) {
    host_.Propose(*drop_);
  }
}

Clock::TimePoint Replica::NextTick() const {
  Clock::TimePoint next = Clock::TimePoint::max();
  if (proposal_.has_value() || drop_.has_value()) {
    next = repeat_at_;
  }
  if (role_ == Role::kSecondary) {
    next = std::min(next, promised_until_);
  }
  if (!IsPrimary()) {
    return next;
  }
  if (!peers_.empty()) {
    next = std::min(next, next_beacon_);
  }
  for (const Peer& peer : peers_) {
    if (!drop_.has_value()) {
      next = std::min(next, peer.heard + options_.times.lease);
    }
    if (peer.in_step && peer.acked < peer.sent) {
      next = std::min(next, peer.resend_at);
    }
    if (peer.full_since.has_value()) {
      next = std::min(next, *peer.full_since + options_.times.lease);
    }
  }
  if (role_ == Role::kDraining && log_.empty()) {
    next = std::min(next, next_release_);
  }
  if (LearnerWaits()) {
    next = std::min(next, next_copy_);
  }
  return next;
}

ReplicaStatus Replica::status() const {
  return {.epoch = configuration_.epoch,
          .committed = committed_,
          .prepared = prepared(),
          .slowest = AckedByAll()};
}

}  // namespace adamant::parameter_server
