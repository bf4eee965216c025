#include "operator/core/diagnosis/training_meter.h"

#include <algorithm>
#include <utility>

namespace adamant::controller {
namespace {

// Totals of one process never fall; if they seem to, nothing is added.
std::uint64_t Growth(std::uint64_t now, std::uint64_t before) {
  return now > before ? now - before : 0;
}

void AddGrowth(const std::vector<std::uint64_t>& now,
               const std::vector<std::uint64_t>& before,
               std::vector<std::uint64_t>& sum) {
  const std::size_t bins = std::min(now.size(), kStalenessBins);
  sum.resize(std::max(sum.size(), bins));
  for (std::size_t i = 0; i < bins; ++i) {
    sum[i] += Growth(now[i], i < before.size() ? before[i] : std::uint64_t{0});
  }
}

}  // namespace

void TrainingMeter::StartEpoch(DataEpoch epoch) {
  before_ = OverAllEpochs();
  is_first_ = epoch_ == 0;
  if (is_first_) {
    recent_.clear();  // processes that only started
  }
  epoch_ = epoch;
  counted_ = 0;
  counted_before_ = 0;
  parts_.clear();
  sum_ = {};
}

void TrainingMeter::OnRejoined(std::uint32_t slot, Incarnation incarnation) {
  WorkerTotals& totals = workers_[slot];
  if (totals.incarnation != incarnation) {
    totals = {.incarnation = incarnation, .last = {}, .next_is_of_before = true};
  }
}

void TrainingMeter::OnUnattended() {
  for (auto& [slot, totals] : workers_) {
    totals.next_is_of_before = true;
  }
}

void TrainingMeter::OnWorker(std::uint32_t slot,
                             Incarnation incarnation,
                             const WorkerProgress& progress,
                             TimePoint now) {
  WorkerTotals& totals = workers_[slot];
  const bool is_new = totals.incarnation != incarnation;
  if (is_new) {
    totals = {.incarnation = incarnation, .last = {}};
  }
  if (std::exchange(totals.next_is_of_before, false)) {
    const std::uint64_t updates_lost = totals.last.updates_lost;
    totals.last = progress;
    totals.last.updates_lost = updates_lost;
  }
  const WorkerProgress& last = totals.last;
  if (!is_new) {
    watched_.trained += Growth(progress.trained_examples, last.trained_examples);
    watched_.loss_sum += progress.loss_sum - last.loss_sum;
  }
  sum_.trained_examples += Growth(progress.trained_examples, last.trained_examples);
  sum_.correct += Growth(progress.correct, last.correct);
  sum_.pushes_refused += Growth(progress.pushes_refused, last.pushes_refused);
  sum_.updates_lost += Growth(progress.updates_lost, last.updates_lost);
  sum_.loss_sum += progress.loss_sum - last.loss_sum;
  AddGrowth(progress.staleness_counts, last.staleness_counts, sum_.staleness_counts);
  AddGrowth(progress.batches_of_others, last.batches_of_others, sum_.batches_of_others);
  totals.last = progress;
  Remember(now);
}

void TrainingMeter::OnDataServer(std::uint32_t slot,
                                 const DataServerProgress& progress,
                                 TimePoint now) {
  if (progress.epoch != epoch_) {
    return;
  }
  const bool is_new = heard_.insert(slot).second;
  const std::uint64_t known = counted_;
  parts_[slot] = progress;
  std::uint64_t counted = 0;
  std::uint64_t total = 0;
  for (const auto& [owner, part] : parts_) {
    counted += part.counted_examples;
    total += part.total_examples;
  }
  // While a lost server's parts have no owner their counts are missing; they are not gone.
  counted_ = std::max(counted_, counted);
  if (is_first_ && is_new) {
    counted_before_ += counted_ - known;
  }
  total_ = std::max(total_, total);
  Remember(now);
}

void TrainingMeter::Remember(TimePoint now) {
  recent_.push_back({now, OverAllEpochs()});
  // One sample from before the window stays: after a pause in which nothing was heard, what comes
  // at once is of all that time.
  while (recent_.size() > 1 && recent_[1].time + kWindow < now) {
    recent_.pop_front();
  }
}

TrainingMeter::Totals TrainingMeter::OverAllEpochs() const {
  return {.counted = before_.counted + counted_ - counted_before_,
          .trained = before_.trained + sum_.trained_examples,
          .loss_sum = before_.loss_sum + sum_.loss_sum};
}

void TrainingMeter::Fill(EpochResult& row) const {
  row.trained = sum_.trained_examples;
  if (sum_.trained_examples > 0) {
    const auto trained = static_cast<double>(sum_.trained_examples);
    row.training_loss = sum_.loss_sum / trained;
    row.training_accuracy = static_cast<double>(sum_.correct) / trained;
  }
  row.pushes_refused = sum_.pushes_refused;
  row.staleness_counts = sum_.staleness_counts;
  row.batches_of_others = sum_.batches_of_others;
}

bool TrainingMeter::Stands(TimePoint now) const {
  TimePoint grown = recent_.front().time;
  Clock::Duration longest{};
  for (std::size_t i = 1; i < recent_.size(); ++i) {
    if (recent_[i].totals.counted > recent_[i - 1].totals.counted) {
      longest = std::max(longest, recent_[i].time - grown);
      grown = recent_[i].time;
    }
  }
  return now - grown > kStill && now - grown > 2 * longest;
}

double TrainingMeter::ExamplesPerSecond(TimePoint now) const {
  if (recent_.size() < 2 || Stands(now)) {
    return 0;
  }
  const Sample& first = recent_.front();
  const Sample& last = recent_.back();
  const std::chrono::duration<double> time = last.time - first.time;
  const auto counted = static_cast<double>(last.totals.counted - first.totals.counted);
  return time.count() > 0 ? counted / time.count() : 0;
}

double TrainingMeter::RecentLoss() const {
  if (recent_.empty()) {
    return 0;
  }
  const Totals& first = recent_.size() < 2 ? before_ : recent_.front().totals;
  const Totals& last = recent_.back().totals;
  return last.MeanLossSince(first);
}

}  // namespace adamant::controller
