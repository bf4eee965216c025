#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/protocol/control.h"
#include "services/common/service/service.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/controller/replication_metrics.h"
#include "services/parameter_server/rpc/peers/peers.h"

namespace adamant::parameter_server {

/// View of the cluster that the controller gives, on its way to the core; and what the disk holds,
/// which the controller must hear first.
/// Threads: any; OnMembership from one.
class ClusterView {
 public:
  struct Links {
    ParameterServer& core;
    Peers& peers;
    service::ControllerLink& controller;
  };

  /// `metrics`, and what is in `links`, must outlive this.
  ClusterView(const Links& links, const ReplicationMetrics& metrics);

  /// Goes to the core as soon as the disk has been read.
  void OnMembership(protocol::Membership membership);

  /// The disk has been read: tells the controller, and the core may take part. Once.
  void OnStored();

  /// Tells the controller again what may have been lost on the way.
  void OnRejoined();

  /// Returns true if others hold a bucket that this server is primary of, so it can be handed over.
  [[nodiscard]] bool HasSuccessors() const;

  /// Returns the slot of the data server that dispatches a part; nothing where that is not known.
  [[nodiscard]] std::optional<std::uint32_t> OwnerOf(std::uint32_t part) const;

 private:
  void Apply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountRoles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendStored();

  // Constant after construction.
  const Links links_;
  const ReplicationMetrics& metrics_;

  // Guarded. The lock is held while the core takes a membership over.
  mutable Mutex mutex_;
  bool stored_ ABSL_GUARDED_BY(mutex_) = false;                             // OnStored was called
  std::optional<protocol::Membership> membership_ ABSL_GUARDED_BY(mutex_);  // the newest
  std::vector<Configuration> configurations_ ABSL_GUARDED_BY(mutex_);       // in it
  PeerAddresses peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
