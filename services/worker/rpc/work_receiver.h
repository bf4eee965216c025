#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/ids.h"
#include "services/common/rpc/frame.h"
#include "services/worker/core/intake/intake.h"
#include "services/worker/rpc/drained_servers.h"

namespace adamant::v1 {
class Batch;
}  // namespace adamant::v1

namespace adamant::worker {

/// Handlers of what a data server says beside batches. Called on the reading thread.
struct WorkHandlers {
  std::function<void(std::vector<Lease>)> on_acknowledged;
  std::function<void(DataEpoch epoch)> on_epoch_closed;
  std::function<void(DataEpoch epoch, std::uint64_t snapshot)> on_snapshot_wanted;
  std::function<void(DataEpoch epoch)> on_epoch_begun;  ///< its first training batch, here
  std::function<void(const Lease&)> on_no_slot;         ///< for a batch, under Intake::settling
};

/// Takes in what one data server sends: copies batches into slots, in order, and reports the rest.
/// While all slots are in use the stream waits, and with it the data server; but batches are let go
/// while the worker settles.
/// Threads: On… on the thread that reads the stream; Stop on any.
class WorkReceiver {
 public:
  /// `intake` and `drained` must outlive this.
  WorkReceiver(ServerSlot server, Intake& intake, DrainedServers& drained, WorkHandlers handlers);

  /// Errors: what the data server refused; InvalidArgument when the data does not fit the model.
  absl::Status OnHello(const rpc::IncomingFrame& frame);
  absl::Status OnFrame(const rpc::IncomingFrame& frame);
  void OnChange(bool connected);

  /// Makes a call that waits for a slot return.
  void Stop();

 private:
  absl::Status OnBatch(const v1::Batch& batch, const rpc::IncomingFrame& frame);

  // Null when there is to be none: the worker settles, or stops.
  Batch* AwaitSlot();

  const ServerSlot server_;
  Intake& intake_;
  DrainedServers& drained_;
  const WorkHandlers handlers_;
  DataEpoch begun_epoch_ = 0;  // that a training batch has come of
  std::atomic<bool> stopped_{false};
};

}  // namespace adamant::worker
