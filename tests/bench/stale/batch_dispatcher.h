#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/dataset/dataset.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/intake/batch_buffer.h"

namespace adamant::bench {

struct SchedulerOptions {
  std::uint32_t batch_size = 32;
  std::uint64_t epochs = 1;
  std::uint64_t warm_start_examples = 0;  ///< until so many are acknowledged only worker 0 trains
  std::uint64_t seed = 1;                 ///< of the order, another one in each epoch
};

/// A data server without faults: dispatches the batches of one epoch after the other, without
/// waiting between them, to whoever asks. Threads: one.
class BatchDispatcher {
 public:
  /// `examples` must outlive this.
  BatchDispatcher(const dataset::Dataset& examples, const SchedulerOptions& options);

  /// Fills the batch, or returns false: there is none for this worker now.
  bool Dispatch(worker::ServerSlot worker, worker::Batch& batch);

  /// A batch is acknowledged or handed back once, by whoever has it: all else ends the process.
  void Acknowledge(const worker::LeaseResult& result);

  /// The batch was not trained on: it is dispatched again, next.
  void HandBack(const worker::Lease& lease);

  /// Nothing is left to dispatch, unless batches are handed back.
  [[nodiscard]] bool Drained() const { return next_ == total_ && returned_.empty(); }

  /// Examples whose updates the servers have.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }

  /// The sum of their losses.
  [[nodiscard]] double loss_sum() const { return loss_sum_; }
  [[nodiscard]] std::uint64_t total_examples() const { return options_.epochs * examples_.size(); }

  /// Rises when workers that had no batch, or waited for one, should ask again.
  [[nodiscard]] std::uint64_t news() const { return news_; }

 private:
  /// Batch `index` of the epoch, which counts from 0.
  struct Place {
    DataEpoch epoch = 0;
    std::uint64_t index = 0;
  };

  [[nodiscard]] bool OnlyWorkerZero() const;
  const std::vector<std::uint32_t>& OrderOf(DataEpoch epoch);
  void Fill(const Place& place, worker::Batch& batch);
  void Return(const worker::Lease& lease);

  const dataset::Dataset& examples_;
  const SchedulerOptions options_;
  const std::uint64_t batches_;  // of an epoch
  const std::uint64_t total_;    // batches
  std::vector<std::vector<std::uint32_t>> orders_;
  std::deque<Place> returned_;
  std::uint64_t next_ = 0;  // batch of all epochs
  std::uint64_t lease_ = 0;
  std::uint64_t acknowledged_ = 0;
  double loss_sum_ = 0;
  std::set<std::uint64_t> leases_;  // of batches that somebody has
  std::uint64_t news_ = 0;
};

}  // namespace adamant::bench
