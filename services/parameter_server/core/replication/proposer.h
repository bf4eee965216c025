#pragma once

#include <optional>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/entry_log.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

/// Proposals of a replica to the controller in its configuration. A proposal to take over or to
/// add binds until the configuration changes; one to drop a replica may be withdrawn, and may still
/// be taken then. Threads: one at a time.
class Proposer {
 public:
  /// The last three must outlive this; configuration and log are the replica's.
  Proposer(BucketId bucket,
           const ServerId& self,
           ReplicaHost& host,
           const Configuration& configuration,
           const EntryLog& log)
      : bucket_(bucket), self_(self), host_(host), configuration_(configuration), log_(log) {}

  /// Hands a proposal to the controller, in place of one of its kind. `subject`: who is to be added
  /// or dropped; `released`: the primary has handed over.
  void Propose(Proposal::Kind kind, const ServerId& subject, bool released, Clock::TimePoint now);

  [[nodiscard]] const std::optional<Proposal>& binding() const { return binding_; }
  [[nodiscard]] const std::optional<Proposal>& drop() const { return drop_; }

  /// Returns true if a proposal of this kind binds.
  [[nodiscard]] bool Binds(Proposal::Kind kind) const {
    return binding_.has_value() && binding_->kind == kind;
  }

  void WithdrawDrop() { drop_.reset(); }

  /// The configuration is over.
  void Clear();

  /// Hands those that are open over again, if it is time.
  void Repeat(Clock::TimePoint now);

  /// Returns when Repeat has something to do though nothing happens.
  [[nodiscard]] Clock::TimePoint NextRepeat() const;

  [[nodiscard]] Clock::TimePoint opened_at() const { return opened_at_; }

 private:
  const BucketId bucket_;
  const ServerId self_;
  ReplicaHost& host_;
  const Configuration& configuration_;
  const EntryLog& log_;
  std::optional<Proposal> binding_;
  std::optional<Proposal> drop_;
  Clock::TimePoint opened_at_{};  // the last one
  Clock::TimePoint repeat_at_{};
};

}  // namespace adamant::parameter_server
