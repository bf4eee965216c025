#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/batch_dispatcher.h"
#include "services/data_server/core/ledger.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/order.h"
#include "services/data_server/core/part.h"
#include "services/data_server/core/part_table.h"

namespace adamant::data_server {

struct BatchSchedulerOptions {
  std::uint32_t slot = 0;       ///< of this data server
  Incarnation incarnation = 1;  ///< of this data server
  std::uint32_t parts = 1;      ///< of the training data: one per data server
  std::uint32_t batch_size = 32;
  std::uint32_t train_examples = 0;
  std::uint32_t validation_examples = 0;
  std::uint64_t most_frequent = 0;          ///< Evaluated::most_frequent
  std::uint64_t epochs = 0;                 ///< of the job; the last one is never followed
  std::optional<double> target_accuracy{};  ///< an evaluation that reaches it is the job's end
  double epoch_completion = 1;              ///< share of the examples at which an epoch may end
  std::uint64_t warm_start_examples = 0;    ///< until then only worker 0 trains
  Clock::Duration lease_time = std::chrono::seconds(10);
  Clock::Duration poll_interval = std::chrono::milliseconds(200);  ///< of other parts' records
  Clock::Duration reload_delay = std::chrono::seconds(1);  ///< after another server wrote ours

  /// Nobody has heard the controller for so long: the data tier opens the epochs.
  Clock::Duration controller_timeout = std::chrono::seconds(15);
};

/// Returns controller_timeout where the controller gives a process up that is silent for
/// `silence_timeout`: longer, so that a controller that lives has given us up by then.
Clock::Duration ControllerTimeout(Clock::Duration silence_timeout);

/// Dispatches work to workers under leases and keeps the ledger of the epoch
/// (docs/design/0001-spine.md, "An epoch" and "The end of an epoch").
///
/// A pure state machine: what it answers depends only on the inputs, their order and their times;
/// batches are dispatched when the input that makes room or work for them is handled. Every batch
/// that is dispatched is counted at most once in its epoch, whatever workers, streams, records and
/// memberships do; the ledger's records make that hold across data servers and restarts.
/// Threads: one thread at a time.
class BatchScheduler {
 public:
  explicit BatchScheduler(const BatchSchedulerOptions& options);

  /// Handles one input; returns what is to be sent, in order. `now` never falls.
  std::vector<Output> Handle(const Input& input, Clock::TimePoint now);

  /// Returns when a Tick is due; nullopt if only other inputs can change anything.
  [[nodiscard]] std::optional<Clock::TimePoint> NextWake() const;

  /// The batches that will be dispatched next, at most `count`, so that they can be prepared.
  [[nodiscard]] std::vector<BatchId> Upcoming(std::size_t count) const;

  /// Without what only whoever reads the data knows: training_examples and data_files.
  [[nodiscard]] protocol::DataServerProgress progress() const;

 private:
  using TimePoint = Clock::TimePoint;

  void On(const Hello& hello, TimePoint now) { batches_.OnHello(hello, now); }
  void On(const WorkerDisconnected& gone, TimePoint) { batches_.OnDisconnected(gone.worker); }
  void On(const Acknowledge& message, TimePoint now) { batches_.OnResults(message, now); }
  void On(const HandBack& message, TimePoint now) { batches_.OnHandBack(message, now); }
  void On(const KeepAlive& message, TimePoint now);
  void On(const ControllerAway& away, TimePoint now);
  void On(const ControllerBack& back, TimePoint now);
  void On(const WorkView& view, TimePoint now);
  void On(const OpenEpoch& command, TimePoint now);
  void On(const CloseEpoch& command, TimePoint now);
  void On(const Evaluate& command, TimePoint now);
  void On(const RecordRead& answer, TimePoint now);
  void On(const RecordWritten& answer, TimePoint) { parts_.OnWritten(answer); }
  void On(const Tick& tick, TimePoint now);

  void StartEpoch(DataEpoch epoch, TimePoint now);
  void EndEpoch(DataEpoch epoch, bool report);
  void Confirm(DataEpoch epoch);
  void ReportEnded();
  [[nodiscard]] bool EpochIsComplete() const;

  // Without a controller (docs/design/0003-operator.md, "Without a controller"): the record of part
  // 0 says which epoch it is and whether it has ended; its owner decides, the others follow.
  void GoOnAlone(TimePoint now);
  void StartAlone(DataEpoch epoch, TimePoint now);
  void Lead(Part& first, TimePoint now);
  void Follow(const Ledger& first, TimePoint now);
  [[nodiscard]] bool IsFollowed() const;

  // Constant after construction.
  const BatchSchedulerOptions options_;
  const PartLayout layout_;

  std::vector<Output> out_;  // of the input being handled
  PartTable parts_;
  BatchDispatcher batches_;
  bool reported_ended_ = false;  // since the epoch was commanded, or begun alone

  // The controller.
  bool away_ = false;           // its stream to us is down
  TimePoint controller_heard_;  // last, by us or a worker; without meaning unless `away_`
  bool alone_ = false;          // for long enough that we go on without it
};

}  // namespace adamant::data_server
