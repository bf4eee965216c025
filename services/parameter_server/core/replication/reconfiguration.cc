#include "services/parameter_server/core/replication/reconfiguration.h"

#include <algorithm>
#include <optional>

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

void Reconfiguration::Drop(const ServerId& server, Clock::TimePoint now) {
  ADAMANT_FAILPOINT("replica/propose_drop");
  proposals_.Propose(Proposal::Kind::kDrop, server, false, now);
}

void Reconfiguration::DropLost(Clock::TimePoint now) {
  const std::optional<Proposal>& drop = proposals_.drop();
  if (const Peer* const lost = traffic_.peers().FindLost(log_.prepared(), now)) {
    if (!drop.has_value() || drop->subject != lost->server) {
      Drop(lost->server, now);
    }
  } else if (drop.has_value() && configuration_.Has(drop->subject) &&
             configuration_.departing != drop->subject) {
    proposals_.WithdrawDrop();  // it is back
  }
}

void Reconfiguration::AddLearner(Lsn promotion, Clock::TimePoint now) {
  Peer* const learner = proposals_.binding().has_value() ? nullptr : traffic_.peers().FindLearner();
  if (learner != nullptr && HasAll(*learner, promotion)) {
    ADAMANT_FAILPOINT("replica/propose_add");
    learner->proposed = true;
    proposals_.Propose(Proposal::Kind::kAdd, learner->server, false, now);
  }
}

// All that was committed without the learner it has acknowledged, and what is committed since has
// waited for it. What this primary took over may have been committed before, though it does not
// know. And its disk has what workers were told to be on all of them.
bool Reconfiguration::HasAll(const Peer& learner, Lsn promotion) const {
  return learner.kind == Peer::Kind::kJoint &&
         learner.acked >= std::max({learner.joint_from, log_.committed(), promotion}) &&
         learner.flushed >= traffic_.durable();
}

}  // namespace adamant::parameter_server
