#include "services/data_server/rpc/batch_pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace adamant::data_server {
namespace {

constexpr std::uint64_t kMaxDepth = 4096;

}  // namespace

BatchPipeline::BatchPipeline(const BatchPipelineOptions& options,
                             const BatchBuilder& builder,
                             const DataMetrics& metrics)
    : options_(options),
      builder_(builder),
      metrics_(metrics),
      depth_(std::clamp<std::uint64_t>(
          options.cache_bytes / builder.max_batch_bytes(), 1, kMaxDepth)) {
  for (unsigned i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

BatchPipeline::~BatchPipeline() {
  MutexLock lock(mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

bool BatchPipeline::Hungry() const {
  MutexLock lock(mutex_);
  return expected_.size() + building_.size() + ready_.size() <= depth_ / 2;
}

void BatchPipeline::Expect(const std::vector<BatchId>& batches) {
  MutexLock lock(mutex_);
  epoch_ = 0;
  for (const BatchId& batch : batches) {
    epoch_ = std::max(epoch_, batch.epoch);
  }
  for (auto it = ready_.begin(); it != ready_.end();) {
    if (it->first.epoch < epoch_) {
      ready_bytes_ -= it->second.own_bytes;
      it = ready_.erase(it);
    } else {
      ++it;
    }
  }
  expected_.clear();
  for (const BatchId& batch : batches) {
    if (!ready_.contains(batch) && !building_.contains(batch)) {
      expected_.push_back(batch);
    }
  }
  Publish();
  changed_.NotifyAll();
}

std::vector<std::uint64_t> BatchPipeline::Turns() const {
  MutexLock lock(mutex_);
  return turns_.all();
}

PreparedBatch BatchPipeline::Take(const BatchId& batch) {
  std::size_t turn = 0;
  {
    MutexLock lock(mutex_);
    if (!ready_.contains(batch)) {
      metrics_.late_batches.Increment();
    }
    while (building_.contains(batch)) {
      changed_.Wait(mutex_);
    }
    if (const auto ready = ready_.find(batch); ready != ready_.end()) {
      PreparedBatch prepared = std::move(ready->second);
      ready_.erase(ready);
      ready_bytes_ -= prepared.own_bytes;
      Publish();
      changed_.NotifyAll();
      return prepared;
    }
    std::erase(expected_, batch);
    turn = turns_.Begin();
  }
  PreparedBatch prepared = Build(batch);
  MutexLock lock(mutex_);
  turns_.End(turn);
  return prepared;
}

void BatchPipeline::Run() {
  const std::uint64_t most = builder_.max_batch_bytes();
  mutex_.Lock();
  while (!stopped_) {
    const std::uint64_t reserved = ready_bytes_ + building_.size() * most;
    const bool room = reserved + most <= options_.cache_bytes || reserved == 0;
    if (expected_.empty() || !room || ready_.size() >= depth_) {
      changed_.Wait(mutex_);
      continue;
    }
    const BatchId batch = expected_.front();
    expected_.pop_front();
    building_.insert(batch);
    const std::size_t turn = turns_.Begin();
    mutex_.Unlock();
    PreparedBatch prepared = Build(batch);
    mutex_.Lock();
    turns_.End(turn);
    building_.erase(batch);
    if (batch.epoch >= epoch_) {
      ready_bytes_ += prepared.own_bytes;
      ready_.emplace(batch, std::move(prepared));
      Publish();
    }
    changed_.NotifyAll();
  }
  mutex_.Unlock();
}

PreparedBatch BatchPipeline::Build(const BatchId& batch) {
  const auto start = std::chrono::steady_clock::now();
  PreparedBatch prepared;
  if (batch.kind == WorkKind::kTrain) {
    const Order order = OrderOf(batch.epoch);
    prepared = builder_.Build(batch, *order);
  } else {
    prepared = builder_.Build(batch, {});
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  metrics_.prepare_seconds.Observe(seconds.count());
  return prepared;
}

BatchPipeline::Order BatchPipeline::OrderOf(DataEpoch epoch) {
  MutexLock lock(order_mutex_);
  if (order_ == nullptr || order_epoch_ != epoch) {
    order_ = std::make_shared<const std::vector<std::uint32_t>>(
        EpochOrder(options_.seed, epoch, options_.train_examples));
    order_epoch_ = epoch;
  }
  return order_;
}

void BatchPipeline::Publish() {
  metrics_.prepared_batches.Set(static_cast<double>(ready_.size()));
  metrics_.cache_bytes.Set(static_cast<double>(ready_bytes_));
}

}  // namespace adamant::data_server
