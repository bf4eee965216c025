#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/evaluation.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/part_table.h"
#include "services/data_server/core/worker_table.h"

namespace adamant::data_server {

struct BatchDispatcherOptions {
  Clock::Duration lease_time = std::chrono::seconds(10);
  std::uint64_t first_lease = 1;          ///< ids count up from here
  std::uint64_t warm_start_examples = 0;  ///< until then only worker 0 trains
  std::uint32_t validation_examples = 0;
  std::uint32_t batch_size = 32;    ///< of an evaluation
  std::uint64_t most_frequent = 0;  ///< Evaluated::most_frequent
};

/// Dispatches batches to workers under leases: those of the parts' open epoch, or of an evaluation.
/// Threads: one thread at a time.
class BatchDispatcher {
 public:
  using TimePoint = Clock::TimePoint;

  /// Creates a dispatcher that appends what it sends to `out`. `parts` and `out` must outlive it.
  BatchDispatcher(const BatchDispatcherOptions& options,
                  PartTable& parts,
                  std::vector<Output>& out);

  // --- Workers

  void OnHello(const Hello& hello, TimePoint now);
  void OnDisconnected(WorkerId worker);
  void OnResults(const Acknowledge& message, TimePoint now);
  void OnHandBack(const HandBack& message, TimePoint now);

  /// Notes that the worker lives; returns false if it is not one of ours (any more).
  bool Hear(WorkerId worker, TimePoint now);

  /// Ends the streams of workers that the view lacks; their batches come back.
  void Retain(const std::vector<WorkerId>& members);

  /// The batches of workers that have been silent for the lease time come back.
  void Expire(TimePoint now);

  /// Returns when Expire has something to do, if nothing is heard until then.
  [[nodiscard]] std::optional<TimePoint> NextExpiry() const { return workers_.NextExpiry(); }

  // --- Batches

  /// Dispatches while there is room and work; tells workers when there is no more work in this
  /// epoch.
  void DispatchAll(TimePoint now);

  /// Begins to dispatch the evaluation that is commanded, unless that has begun; sends its sums if
  /// it is done.
  void OnEvaluate(const Evaluate& command);
  void ForgetEvaluation();

  /// The evaluation commanded last, since ForgetEvaluation.
  [[nodiscard]] const std::optional<Evaluation>& evaluation() const { return evaluation_; }

  /// Voids the leases on the batches of a part.
  void ForgetPart(std::uint32_t part);

  /// Voids the leases on training batches of the epochs up to this one; returns whether there were
  /// any.
  bool ForgetTraining(DataEpoch up_to_epoch);

  /// Tells the workers that the epoch is closed.
  void TellClosed(DataEpoch epoch);

  /// An epoch begins: workers are told anew when it has no more work.
  void ForgetDrained();

  /// The batches that will be dispatched next, at most `count`.
  [[nodiscard]] std::vector<BatchId> Upcoming(std::size_t count) const;

  /// Training examples that are out under lease.
  [[nodiscard]] std::uint64_t DispatchedExamples() const;

 private:
  WorkerTable::Worker* HearWorker(WorkerId id, TimePoint now);
  std::optional<PartTable::Choice> NextFor(const WorkerTable::Worker& worker);
  void DispatchTo(WorkerTable::Worker& worker, const PartTable::Choice& choice);
  void TellDrained();
  void GiveBack(const BatchId& batch, bool lost);
  void GiveBackAll(const std::vector<BatchId>& lost);
  void JudgeEvaluation(WorkerId worker, const LeaseResult& result);
  [[nodiscard]] bool OnlyWorkerZero() const;

  const BatchDispatcherOptions options_;
  PartTable& parts_;
  std::vector<Output>& out_;
  WorkerTable workers_;
  std::optional<Evaluation> evaluation_;
};

}  // namespace adamant::data_server
