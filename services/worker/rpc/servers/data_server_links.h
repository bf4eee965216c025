#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/frame.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/rpc/drained_servers.h"
#include "services/worker/rpc/link.h"
#include "services/worker/rpc/servers/server_table.h"
#include "services/worker/rpc/work_receiver.h"
#include "services/worker/rpc/worker_identity.h"

namespace adamant::worker {

/// Handlers of the links to data servers: called on their reading threads, but for on_removed.
struct DataServerHandlers {
  WorkHandlers work;
  std::function<void(ServerSlot server, bool connected)> on_change;
  std::function<void(const absl::Status&)> on_misfit;  ///< the data does not fit the model
  std::function<void(ServerSlot server)> on_removed;   ///< is a member no longer; within Update
};

/// A link to every data server of the job, on which the worker has introduced itself; batches that
/// they dispatch go to the intake.
/// Threads: one at a time.
class DataServerLinks {
 public:
  /// `intake` must outlive this.
  DataServerLinks(const WorkerIdentity& identity, Intake& intake, DataServerHandlers handlers);

  /// Links to the members of now.
  void Update(const protocol::Membership& view);

  /// Queues a frame; dropped where the server is no member (Link::Send).
  void Send(ServerSlot server, rpc::OutgoingFrame frame);

  /// Says on links with nothing to send that the worker lives, and whether its control stream is
  /// up.
  void KeepAlive(bool controller_heard);

  /// Ends all links: no handler is called after this.
  void Close() { streams_.Clear(); }

 private:
  /// A link, and who takes in what comes on it.
  struct Stream {
    Stream(ServerSlot server, Intake& intake, DrainedServers& drained, const WorkHandlers& handlers)
        : receiver(server, intake, drained, handlers) {}
    ~Stream() { receiver.Stop(); }

    WorkReceiver receiver;
    std::unique_ptr<Link> link;  // its threads use the receiver
  };

  std::unique_ptr<Stream> Open(const ServerAddress& place);
  [[nodiscard]] LinkOptions OptionsFor(const ServerAddress& place) const;

  const WorkerIdentity identity_;
  Intake& intake_;
  const DataServerHandlers handlers_;
  DrainedServers drained_;
  ServerTable<Stream> streams_;
};

}  // namespace adamant::worker
