#pragma once

#include <cstdint>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// The processes of parameter servers that records name and that are proved to be dead. Silence and
/// a kill that was asked for are no proof; see docs/design/0002-replication.md.
/// Threads: one thread at a time.
class Deaths {
 public:
  /// `state` must outlive this.
  explicit Deaths(JobState& state) : state_(state) {}

  /// Returns whether it is news of somebody whom a record names.
  bool Prove(Holder holder);

  /// The incarnations of a slot up to this one are dead.
  bool ProveUpTo(std::uint32_t slot, std::uint64_t incarnation);

  /// Everybody whom records name is dead.
  bool ProveAll();

  [[nodiscard]] bool Has(Holder holder) const;

  /// Forgets those whom records no longer name.
  void Prune();

 private:
  [[nodiscard]] std::vector<Holder> Named() const;

  JobState& state_;
};

}  // namespace adamant::controller
