#include "services/parameter_server/core/replication/reconfiguration.h"

#include <optional>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

void Reconfiguration::Drop(const ServerId& server, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  proposals_.Propose(Proposal::Kind::kDrop, server, false, now);
}

void Reconfiguration::DropLost(Clock::TimePoint now) {
  const std::optional<Proposal>& drop = proposals_.drop();
  if (const Peer* const lost = leading_.peers().FindLost(log_.prepared(), now)) {
    if (!drop.has_value() || drop->subject != lost->server) {
      Drop(lost->server, now);
    }
  } else if (drop.has_value() && configuration_.Has(drop->subject) &&
             configuration_.departing != drop->subject) {
    proposals_.WithdrawDrop();  // it is back
  }
}

void Reconfiguration::AddLearner(Lsn promotion, Clock::TimePoint now) {
  Peer* const learner = proposals_.binding().has_value() ? nullptr : leading_.FindToAdd(promotion);
  if (learner != nullptr) {
    ADAMANT_FAILPOINT("replica/propose_add");
    learner->proposed = true;
    proposals_.Propose(Proposal::Kind::kAdd, learner->server, false, now);
  }
}

}  // namespace adamant::parameter_server
