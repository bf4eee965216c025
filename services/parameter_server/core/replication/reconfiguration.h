#pragma once

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/peer_table.h"
#include "services/parameter_server/core/replication/peer_traffic.h"
#include "services/parameter_server/core/replication/proposer.h"

namespace adamant::parameter_server {

/// Changes of a bucket's set of replicas that its primary proposes: a learner that has caught up
/// joins, and who is lost leaves. Threads: one at a time.
class Reconfiguration {
 public:
  /// All must outlive this; configuration and log are the replica's.
  Reconfiguration(const Configuration& configuration,
                  const EntryLog& log,
                  PeerTraffic& traffic,
                  Proposer& proposals)
      : configuration_(configuration), log_(log), traffic_(traffic), proposals_(proposals) {}

  void Drop(const ServerId& server, Clock::TimePoint now);

  /// Drops who is lost, or withdraws that when it is back.
  void DropLost(Clock::TimePoint now);

  /// Adds the learner once it has all. `promotion`: prepared when this primary took over.
  void AddLearner(Lsn promotion, Clock::TimePoint now);

 private:
  [[nodiscard]] bool HasAll(const Peer& learner, Lsn promotion) const;

  const Configuration& configuration_;
  const EntryLog& log_;
  PeerTraffic& traffic_;
  Proposer& proposals_;
};

}  // namespace adamant::parameter_server
