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

void Following::Promise(Clock::TimePoint now) {
  promised_until_ = now + grace_;
  last_beacon_ = now;
}

void Following::BeginCopy(Lsn base) {
  acked_ = base;
  known_committed_ = 0;
}

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

void Following::OnBeacon(const Beacon& beacon, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/promise");
  Promise(now);
  flush_wanted_ = flush_wanted_ || beacon.flush;
  beacon_sent_ = beacon.sent;
  LearnCommitted(beacon.committed);
  AnswerBeacon();
}

void Following::OnConnected() {
  if (beacon_sent_.has_value()) {
    AnswerBeacon();
  }
}

void Following::AnswerBeacon() {
  Send(BeaconAnswer{.sent = *beacon_sent_,
                    .acked = Acked(),
                    .copy = local_.copy(),
                    .flushed = local_.log().OnDisk()});
}

void Following::OnPrepare(const Prepare& prepare) {
  const Lsn next = *acked_ + 1;
  const bool gap = prepare.entry->lsn > next;
  if (prepare.entry->lsn == next) {
    ADAMANT_FAILPOINT("replica/accept");
    Accept(prepare.entry);
  }
  LearnCommitted(prepare.committed);
  Acknowledge(gap);
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
