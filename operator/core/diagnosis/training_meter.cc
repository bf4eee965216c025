#include "operator/core/diagnosis/training_meter.h"

#include <algorithm>
#include <utility>

#include "operator/core/state/sent_again.h"

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
  if (state_->totals.epoch != epoch) {
    state_->totals = {.epoch = epoch};
  }
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

bool TrainingMeter::OnWorker(std::uint32_t slot,
                             Incarnation incarnation,
                             const WorkerProgress& progress,
                             TimePoint now) {
  WorkerTotals& totals = workers_[slot];
  const bool is_new = totals.incarnation != incarnation;
  if (is_new) {
    totals = {.incarnation = incarnation, .last = {}};
  }
  if (std::exchange(totals.next_is_of_before, false)) {
    totals.last = progress;
  }
  if (!is_new) {
    watched_.trained += Growth(progress.trained_examples, totals.last.trained_examples);
    watched_.loss_sum += progress.loss_sum - totals.last.loss_sum;
  }
  Add(progress, totals.last);
  totals.last = progress;
  Remember(now);
  return CountLosses(slot, incarnation, progress.updates_lost);
}

void TrainingMeter::Add(const WorkerProgress& now, const WorkerProgress& before) {
  const std::uint64_t trained = Growth(now.trained_examples, before.trained_examples);
  const double loss = now.loss_sum - before.loss_sum;
  metered_.trained += trained;
  metered_.loss_sum += loss;
  EpochTotals& sum = state_->totals;
  sum.trained += trained;
  sum.loss_sum += loss;
  sum.correct += Growth(now.correct, before.correct);
  sum.pushes_refused += Growth(now.pushes_refused, before.pushes_refused);
  AddGrowth(
      now.update_staleness_counts, before.update_staleness_counts, sum.update_staleness_counts);
  AddGrowth(now.batches_of_others, before.batches_of_others, sum.batches_of_others);
}

// Whoever led the job when they were told: each is counted once.
bool TrainingMeter::CountLosses(std::uint32_t slot,
                                Incarnation incarnation,
                                std::uint64_t updates) {
  if (updates == 0) {
    return false;
  }
  std::vector<LossesTold>& all = state_->losses_told;
  all.resize(std::max(all.size(), std::size_t{slot} + 1));
  LossesTold& told = all[slot];
  if (told.incarnation != incarnation) {
    told = {.incarnation = incarnation};
  }
  const std::uint64_t found = Growth(updates, told.updates);
  told.updates += found;
  CountLost(*state_, found);
  return found > 0;
}

void TrainingMeter::OnDataServer(std::uint32_t slot,
                                 const DataServerProgress& progress,
                                 TimePoint now) {
  if (epoch_ == 0 || progress.epoch != epoch_) {
    return;  // no epoch is open, or none is known to be
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
          .trained = metered_.trained,
          .loss_sum = metered_.loss_sum};
}

void TrainingMeter::Fill(EpochResult& row) const {
  const EpochTotals& sum = state_->totals;
  row.trained = sum.trained;
  if (sum.trained > 0) {
    const auto trained = static_cast<double>(sum.trained);
    row.training_loss = sum.loss_sum / trained;
    row.training_accuracy = static_cast<double>(sum.correct) / trained;
  }
  row.pushes_refused = sum.pushes_refused;
  row.update_staleness_counts = sum.update_staleness_counts;
  row.batches_of_others = sum.batches_of_others;
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
