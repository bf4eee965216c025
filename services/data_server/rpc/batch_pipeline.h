#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "services/common/base/busy_meter.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/data_server/core/batches/batch_builder.h"
#include "services/data_server/rpc/data_metrics.h"

namespace adamant::data_server {

struct BatchPipelineOptions {
  unsigned threads = 1;
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;  ///< of batches prepared and not yet taken
  std::uint64_t seed = 0;                                ///< of the epochs' orders
  std::uint32_t train_examples = 0;
};

/// Prepares batches on threads of its own, ahead of demand and within a byte limit.
/// Threads: any. Starts `threads`, which end with it.
class BatchPipeline {
 public:
  /// `builder` and `metrics` must outlive this.
  BatchPipeline(const BatchPipelineOptions& options,
                const BatchBuilder& builder,
                const DataMetrics& metrics);
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  /// Returns the number of batches that it can hold ready.
  [[nodiscard]] std::size_t depth() const { return depth_; }

  /// Returns true if it has little left to do or to give, so that Expect should be called.
  [[nodiscard]] bool Hungry() const;

  /// The batches that will be taken next, in order. Prepared batches of earlier epochs are dropped.
  void Expect(const std::vector<BatchId>& batches);

  /// Takes a batch: at once if it is prepared, else as soon as it is (prepared here if nobody has
  /// begun).
  PreparedBatch Take(const BatchId& batch);

  /// Of those who prepare a batch, for a BusyMeter.
  [[nodiscard]] std::vector<std::uint64_t> Turns() const;

 private:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;

  void Run();
  PreparedBatch Build(const BatchId& batch);
  Order OrderOf(DataEpoch epoch);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const BatchPipelineOptions options_;
  const BatchBuilder& builder_;
  const DataMetrics& metrics_;
  const std::size_t depth_;

  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  DataEpoch epoch_ ABSL_GUARDED_BY(mutex_) = 0;  // expected; batches of earlier ones are dropped
  std::deque<BatchId> expected_ ABSL_GUARDED_BY(mutex_);  // not begun
  std::set<BatchId> building_ ABSL_GUARDED_BY(mutex_);    // by our threads
  std::map<BatchId, PreparedBatch> ready_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t ready_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  adamant::Turns turns_ ABSL_GUARDED_BY(mutex_);

  Mutex order_mutex_;  // never taken together with mutex_
  DataEpoch order_epoch_ ABSL_GUARDED_BY(order_mutex_) = 0;
  Order order_ ABSL_GUARDED_BY(order_mutex_);  // of order_epoch_

  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace adamant::data_server
