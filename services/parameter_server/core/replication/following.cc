#include "services/parameter_server/core/replication/following.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

void Following::BeginConfiguration() {
  acked_.reset();
  beacon_sent_.reset();
  known_committed_ = 0;
  flush_wanted_ = false;
}

void Following::BecomeSecondary(Clock::TimePoint now) {
  role_ = Role::kSecondary;
  local_.EndCopy();
  Promise(now);
}

void Following::Promise(Clock::TimePoint now) {
  promised_until_ = now + options_.grace;
  last_beacon_ = now;
}

// --- The learner

bool Following::Learns(const ServerId& from, const CopyBegin& begin) const {
  const bool begun = role_ == Role::kLearner && begin.copy <= local_.copy();
  return from == configuration_.primary && !configuration_.Has(options_.self) && !begun;
}

void Following::BeginCopy(const CopyBegin& begin) {
  role_ = Role::kLearner;
  // An earlier program does not say whose entry the base is: nobody's can be of a later version.
  const bool known = begin.base_origin != 0 || begin.base == 0;
  local_.BeginCopy(begin.copy, begin.base, known ? begin.base_origin : configuration_.version);
  acked_ = begin.base;
  known_committed_ = 0;
  host_.Learn(bucket_, begin);
}

void Following::OnInstalled(std::uint64_t copy) {
  if (role_ == Role::kLearner && copy == local_.copy()) {
    local_.SetHasContent();
    CommitWhatIsKnown();
  }
}

// --- As the primary sends

bool Following::Follows(const ServerId& from) const {
  return from == configuration_.primary && role_ != Role::kNone;
}

// The configuration began with what was committed up to `base`.
bool Following::HearsFrom(Lsn base) {
  if (acked_.has_value()) {
    return true;
  }
  if (base > local_.log().prepared()) {
    return false;
  }
  acked_ = std::max(base, local_.log().committed());
  return true;
}

bool Following::OnBeacon(const ServerId& from, const Beacon& beacon, Clock::TimePoint now) {
  if (!Follows(from) || role_ == Role::kProposing) {
    return true;
  }
  if (!HearsFrom(beacon.base)) {
    return false;
  }
  ADAMANT_FAILPOINT("replica/promise");
  Promise(now);
  flush_wanted_ = flush_wanted_ || beacon.flush;
  beacon_sent_ = beacon.sent;
  LearnCommitted(beacon.committed);
  AnswerBeacon();
  return true;
}

void Following::OnConnected(const ServerId& server) {
  if (Follows(server) && role_ != Role::kProposing && beacon_sent_.has_value()) {
    AnswerBeacon();
  }
}

void Following::AnswerBeacon() {
  Send(BeaconAnswer{.sent = *beacon_sent_,
                    .acked = Acked(),
                    .copy = local_.copy(),
                    .flushed = local_.log().OnDisk()});
}

bool Following::OnPrepare(const ServerId& from, const Prepare& prepare) {
  if (!Follows(from)) {
    return true;
  }
  if (!HearsFrom(prepare.base)) {
    return false;
  }
  const Lsn next = *acked_ + 1;
  const bool gap = prepare.entry->lsn > next;
  if (prepare.entry->lsn == next) {
    ADAMANT_FAILPOINT("replica/accept");
    Accept(prepare.entry);
  }
  LearnCommitted(prepare.committed);
  Acknowledge(gap);
  return true;
}

void Following::Accept(const EntryPtr& entry) {
  acked_ = entry->lsn;
  EntryLog& log = local_.log();
  if (entry->lsn <= log.committed() || log.Has(*entry)) {
    return;
  }
  log.CutFrom(entry->lsn);
  local_.Keep(entry);
}

void Following::OnPersisted() {
  if (acked_.has_value()) {
    Acknowledge(false);
    CommitWhatIsKnown();
  }
}

void Following::OnFlushed() {
  if (acked_.has_value() && std::exchange(flush_wanted_, false)) {
    Acknowledge(false);
  }
}

void Following::Acknowledge(bool gap) {
  ADAMANT_FAILPOINT("replica/acknowledge");
  Send(PrepareAck{
      .acked = Acked(), .gap = gap, .copy = local_.copy(), .flushed = local_.log().OnDisk()});
}

// Nothing that the disk lacks.
Lsn Following::Acked() const { return std::min(*acked_, local_.log().persisted()); }

void Following::LearnCommitted(Lsn committed) {
  known_committed_ = std::max(known_committed_, committed);
  CommitWhatIsKnown();
}

// Once the content is there. Only what was acknowledged in this configuration is known to be the
// same.
void Following::CommitWhatIsKnown() {
  if (local_.has_content()) {
    local_.CommitUpTo(std::min({known_committed_, acked_.value_or(0), local_.log().persisted()}));
  }
}

void Following::Send(decltype(PeerMessage::kind) kind) {
  host_.Send(configuration_.primary,
             {.bucket = bucket_,
              .configuration_version = configuration_.version,
              .kind = std::move(kind)});
}

}  // namespace adamant::parameter_server
