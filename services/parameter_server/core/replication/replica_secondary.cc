#include <algorithm>
#include <utility>
#include <variant>

#include "services/common/base/failpoint.h"
#include "services/parameter_server/core/replication/replica.h"

// The secondary and the learner: what the primary sends.
namespace adamant::parameter_server {

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
  if (acked_.has_value()) {
    return;
  }
  if (base > prepared()) {
    return Leave();
  }
  acked_ = std::max(base, committed_);
}

Lsn Replica::Acked() const { return std::min(*acked_, persisted_); }

void Replica::Handle(const Holder& from, const Beacon& beacon, Clock::TimePoint now) {
  if (!Follows(from) || role_ == Role::kProposing) {
    return;
  }
  StartEpochAt(beacon.base);
  if (!acked_.has_value()) {
    return;
  }
  ADAMANT_FAILPOINT("replica/promise");
  promised_until_ = now + options_.times.grace;
  last_beacon_ = now;
  flush_wanted_ = flush_wanted_ || beacon.flush;
  beacon_sent_ = beacon.sent;
  LearnCommitted(beacon.committed);
  AnswerBeacon();
}

// Again when the way to the primary opens after its beacon came: the next one may be long in
// coming.
void Replica::AnswerBeacon() {
  Send(configuration_.primary,
       BeaconAnswer{.sent = *beacon_sent_, .acked = Acked(), .copy = copy_, .flushed = OnDisk()});
}

void Replica::Handle(const Holder& from, const Prepare& prepare, Clock::TimePoint /*now*/) {
  if (!Follows(from)) {
    return;
  }
  StartEpochAt(prepare.base);
  if (!acked_.has_value()) {
    return;
  }
  const bool gap = prepare.entry->lsn > *acked_ + 1;
  if (prepare.entry->lsn == *acked_ + 1) {
    ADAMANT_FAILPOINT("replica/accept");
    Accept(prepare.entry);
  }
  LearnCommitted(prepare.committed);
  Acknowledge(gap);
}

void Replica::Accept(const EntryPtr& entry) {
  acked_ = entry->lsn;
  if (entry->lsn <= committed_) {
    return;
  }
  const std::size_t index = entry->lsn - committed_ - 1;
  if (index < log_.size() && log_[index]->origin == entry->origin) {
    return;
  }
  while (log_.size() > index) {
    if (prepared() > persisted_ && MustPersist(*log_.back())) {
      storing_.pop_back();
    }
    log_bytes_ -= log_.back()->bytes;
    log_.pop_back();
  }
  persisted_ = std::min(persisted_, entry->lsn - 1);
  KeepEntry(entry);
}

void Replica::Acknowledge(bool gap) {
  ADAMANT_FAILPOINT("replica/acknowledge");
  Send(configuration_.primary,
       PrepareAck{.acked = Acked(), .gap = gap, .copy = copy_, .flushed = OnDisk()});
}

// Only what was acknowledged in this epoch is known to be the same here.
void Replica::LearnCommitted(Lsn committed) {
  known_committed_ = std::max(known_committed_, committed);
  if (!has_content_) {
    return;
  }
  const Lsn limit = std::min({known_committed_, acked_.value_or(0), persisted_});
  while (committed_ < limit) {
    CommitOne();
  }
}

void Replica::Handle(const Holder& from, const Released& /*released*/, Clock::TimePoint now) {
  if (from == configuration_.primary &&
      (role_ == Role::kSecondary || (role_ == Role::kProposing && !proposal_->released))) {
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
  committed_ = begin.base;
  persisted_ = begin.base;
  acked_ = begin.base;
  flushed_ = begin.base;  // the copy counts when it is on disk
  known_committed_ = 0;
  host_.Learn(bucket_, begin);
}

void Replica::Installed(std::uint64_t copy, Clock::TimePoint /*now*/) {
  if (role_ == Role::kLearner && copy == copy_) {
    has_content_ = true;
    LearnCommitted(known_committed_);
  }
}

}  // namespace adamant::parameter_server
