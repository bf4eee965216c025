#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "services/common/base/mutex.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/rpc/peers/peer_metrics.h"

namespace adamant::parameter_server {

/// Method that parameter servers deliver to each other by.
inline constexpr char kDeliverMethod[] = "/adamant.v1.Replication/Deliver";

/// Addresses at which the other parameter servers listen for their peers.
using PeerAddresses = std::map<ServerId, std::string>;

/// The ways to all other parameter servers: to each one for bulk and one for control, so that no
/// beacon waits behind a copy.
/// Threads: any, Set and Stop from one.
class Peers {
 public:
  struct Options {
    std::uint64_t job_uid = 0;
    ServerId self = {};
    rpc::MemberSecurity security = {};

    /// The ways to a peer are open, or one of them is open anew. Called on any thread, without a
    /// lock.
    std::function<void(const ServerId&)> on_connected;
  };

  /// `metrics` must outlive this.
  Peers(Options options, const PeerMetrics& metrics);
  ~Peers();

  /// Opens ways to those that are new and closes those to peers that are not named any more.
  void Set(const PeerAddresses& addresses);

  /// Queues a message; dropped when there is no open way to exactly this server.
  void Send(const ServerId& to, PeerMessage message);

  /// Closes all ways. Idempotent.
  void Stop();

 private:
  class Link;

  const Options options_;
  const PeerMetrics& metrics_;

  // Guarded.
  Mutex mutex_;
  std::map<ServerId, std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
