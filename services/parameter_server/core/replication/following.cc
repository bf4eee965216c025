#include "services/parameter_server/core/replication/following.h"

#include <algorithm>
#include <utility>

namespace adamant::parameter_server {

void Following::BeginEpoch() {
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

Lsn Following::Acked(Lsn persisted) const { return std::min(*acked_, persisted); }

void Following::OnBeacon(const Beacon& beacon, Clock::TimePoint now) {
  Promise(now);
  flush_wanted_ = flush_wanted_ || beacon.flush;
  beacon_sent_ = beacon.sent;
}

void Following::HearCommitted(Lsn committed) {
  known_committed_ = std::max(known_committed_, committed);
}

Lsn Following::CommitLimit(Lsn persisted) const {
  return std::min({known_committed_, acked_.value_or(0), persisted});
}

bool Following::TakeFlushWanted() { return std::exchange(flush_wanted_, false); }

}  // namespace adamant::parameter_server
