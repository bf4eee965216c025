#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/frame.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/rpc/link.h"
#include "services/worker/rpc/servers/server_table.h"
#include "services/worker/rpc/worker_identity.h"

namespace adamant::worker {

/// Handlers of the links to parameter servers: called on their reading threads, but for on_removed.
struct ParameterServerHandlers {
  std::function<void(ServerSlot server, bool connected)> on_change;
  std::function<absl::Status(rpc::IncomingFrame)> on_reply;  ///< as LinkHandlers::on_frame
  std::function<void()> on_stale;                     ///< another process has this worker's slot
  std::function<void(ServerSlot server)> on_removed;  ///< is a member no longer; within Update
};

/// A link to every parameter server of the job, on which the worker has introduced itself.
/// Threads: one at a time.
class ParameterServerLinks {
 public:
  /// `max_message_bytes`: payload of a reply.
  ParameterServerLinks(const WorkerIdentity& identity,
                       std::uint64_t max_message_bytes,
                       ParameterServerHandlers handlers);

  /// Links to the members of now.
  void Update(const protocol::Membership& view);

  /// Queues a frame; dropped where the server is no member (Link::Send).
  void Send(ServerSlot server, rpc::OutgoingFrame frame);

  /// Ends all links: no handler is called after this.
  void Close() { links_.Clear(); }

 private:
  std::unique_ptr<Link> Open(const ServerAddress& place);
  [[nodiscard]] absl::Status OnHello(const rpc::IncomingFrame& frame) const;

  const WorkerIdentity identity_;
  const std::uint64_t max_message_bytes_;
  const ParameterServerHandlers handlers_;
  ServerTable<Link> links_;
};

}  // namespace adamant::worker
