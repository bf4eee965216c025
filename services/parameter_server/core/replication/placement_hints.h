#pragma once

#include <optional>

#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/peer_table.h"
#include "services/parameter_server/core/replication/proposer.h"

namespace adamant::parameter_server {

/// Hints of a bucket's configuration to its primary on what to do next, as far as it can be done
/// now.
/// Threads: one at a time.
class PlacementHints {
 public:
  /// The arguments after `self` must outlive this.
  PlacementHints(const ServerId& self,
                 const Configuration& configuration,
                 const PeerTable& peers,
                 const Proposer& proposals)
      : self_(self), configuration_(configuration), peers_(peers), proposals_(proposals) {}

  /// Returns who has been proposed as a replica, and is to be none any more.
  [[nodiscard]] std::optional<ServerId> NotToAdd() const;

  /// Returns whom to hand the bucket over to.
  [[nodiscard]] std::optional<ServerId> Successor() const;

  /// Returns the replica to be dropped.
  [[nodiscard]] std::optional<ServerId> Departing() const;

  /// Returns true if the copy under way is for one who is to get none.
  [[nodiscard]] bool GivesUpCopy() const;

  /// Returns who waits for a copy, while there is none under way.
  [[nodiscard]] std::optional<ServerId> Learner() const;

 private:
  const ServerId self_;
  const Configuration& configuration_;
  const PeerTable& peers_;
  const Proposer& proposals_;
};

}  // namespace adamant::parameter_server
