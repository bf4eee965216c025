#include "tests/bench/stale/batch_dispatcher.h"

#include <algorithm>
#include <span>

#include "services/common/base/check.h"
#include "services/common/base/rng.h"
#include "tests/bench/data/examples.h"

namespace adamant::bench {

BatchDispatcher::BatchDispatcher(const dataset::Dataset& examples, const SchedulerOptions& options)
    : examples_(examples),
      options_(options),
      batches_((examples.size() + options.batch_size - 1) / options.batch_size),
      total_(options.epochs * batches_) {}

bool BatchDispatcher::Dispatch(worker::ServerSlot worker, worker::Batch& batch) {
  if (Drained() || (worker != 0 && OnlyWorkerZero())) {
    return false;
  }
  if (returned_.empty()) {
    Fill({.epoch = next_ / batches_, .index = next_ % batches_}, batch);
    ++next_;
  } else {
    Fill(returned_.front(), batch);
    returned_.pop_front();
  }
  if (Drained()) {
    ++news_;
  }
  return true;
}

void BatchDispatcher::Acknowledge(const worker::LeaseResult& result) {
  Return(result.lease);
  const bool alone = OnlyWorkerZero();
  acknowledged_ += result.examples;
  loss_sum_ += result.loss_sum;
  if (alone != OnlyWorkerZero()) {
    ++news_;
  }
}

void BatchDispatcher::HandBack(const worker::Lease& lease) {
  Return(lease);
  returned_.push_back({.epoch = lease.batch.epoch - 1, .index = lease.batch.index});
  ++news_;
}

void BatchDispatcher::Return(const worker::Lease& lease) {
  ADAMANT_CHECK(leases_.erase(lease.id) == 1, "the batch is not dispatched, or is back already");
}

bool BatchDispatcher::OnlyWorkerZero() const {
  return acknowledged_ < options_.warm_start_examples;
}

const std::vector<std::uint32_t>& BatchDispatcher::OrderOf(DataEpoch epoch) {
  while (orders_.size() <= epoch) {
    orders_.push_back(Permutation(examples_.size(), MixSeed(options_.seed, orders_.size())));
  }
  return orders_[epoch];
}

void BatchDispatcher::Fill(const Place& place, worker::Batch& batch) {
  const std::uint64_t begin = place.index * options_.batch_size;
  const std::uint64_t count =
      std::min<std::uint64_t>(options_.batch_size, examples_.size() - begin);
  batch.lease = {
      .batch = {.epoch = place.epoch + 1, .index = static_cast<std::uint32_t>(place.index)},
      .id = ++lease_};
  leases_.insert(lease_);
  batch.examples = static_cast<std::uint32_t>(count);
  batch.job_examples = acknowledged_;
  batch.ahead_examples = (leases_.size() - 1) * options_.batch_size + (count + 1) / 2;
  auto pixels = batch.pixels.begin();
  auto label = batch.labels.begin();
  for (const std::uint32_t example : std::span(OrderOf(place.epoch)).subspan(begin, count)) {
    pixels = std::ranges::copy(examples_.image(example), pixels).out;
    *label++ = examples_.labels[example];
  }
}

}  // namespace adamant::bench
