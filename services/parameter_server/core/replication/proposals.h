#pragma once

#include <optional>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// What a replica has proposed to the controller in this epoch. A proposal to take over or to add
/// binds until the epoch changes; one to drop a member may be withdrawn, and may still be taken
/// then.
/// Threads: one at a time.
class Proposals {
 public:
  /// Opens a proposal, in place of one of its kind. Returns it: it is to be handed to the
  /// controller.
  const Proposal& Open(const Proposal& proposal, Clock::TimePoint now);

  [[nodiscard]] const std::optional<Proposal>& binding() const { return binding_; }
  [[nodiscard]] const std::optional<Proposal>& drop() const { return drop_; }
  [[nodiscard]] bool any() const { return binding_.has_value() || drop_.has_value(); }

  /// Whether a proposal of this kind binds.
  [[nodiscard]] bool Binds(Proposal::Kind kind) const {
    return binding_.has_value() && binding_->kind == kind;
  }

  /// The binding one names what is prepared by now: proposals are handed over again.
  void SetLast(Lsn prepared);

  void WithdrawDrop() { drop_.reset(); }

  /// The epoch is over.
  void Clear();

  [[nodiscard]] Clock::TimePoint opened_at() const { return opened_at_; }

  /// Returns when those that are open are to be handed over again.
  [[nodiscard]] Clock::TimePoint repeat_at() const { return repeat_at_; }
  void RepeatAfter(Clock::TimePoint now);

 private:
  std::optional<Proposal> binding_;
  std::optional<Proposal> drop_;
  Clock::TimePoint opened_at_{};  // the last one
  Clock::TimePoint repeat_at_{};
};

}  // namespace adamant::parameter_server
