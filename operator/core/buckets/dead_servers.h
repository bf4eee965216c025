#pragma once

#include <cstdint>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// The processes of parameter servers that configurations name and that are proved to be dead.
/// Silence and a kill that was asked for are no proof; see docs/design/0002-replication.md.
/// Threads: one thread at a time.
class DeadServers {
 public:
  /// `state` must outlive this.
  explicit DeadServers(JobState& state) : state_(state) {}

  /// Returns whether it is news of somebody whom a configuration names.
  bool MarkDead(ServerId server);

  /// The incarnations of a slot up to this one are dead.
  bool MarkDeadUpTo(std::uint32_t slot, Incarnation incarnation);

  /// Everybody whom configurations name is dead.
  bool MarkAllDead();

  [[nodiscard]] bool Has(ServerId server) const;

  /// Forgets those whom configurations no longer name.
  void Prune();

 private:
  [[nodiscard]] std::vector<ServerId> Named() const;

  JobState& state_;
};

}  // namespace adamant::controller
