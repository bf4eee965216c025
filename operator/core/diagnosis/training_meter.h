#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Turns the totals in heartbeats into what users watch: loss and accuracy of the open epoch, which
/// the state keeps, and speed. What is told before the first heartbeat of a process is counted from
/// zero, its start.
/// Threads: one thread at a time.
class TrainingMeter {
 public:
  using TimePoint = Clock::TimePoint;

  /// Speed and loss are averaged over this time, whatever epochs it spans, or since what was last
  /// heard before it.
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr std::chrono::seconds kStill{3};

  struct Totals {
    std::uint64_t counted = 0;
    std::uint64_t trained = 0;
    double loss_sum = 0;

    /// 0: nothing was trained since.
    [[nodiscard]] double MeanLossSince(const Totals& before) const {
      return trained > before.trained
                 ? (loss_sum - before.loss_sum) / static_cast<double>(trained - before.trained)
                 : 0;
    }
  };

  /// `state` must outlive this.
  explicit TrainingMeter(JobState& state) : state_(&state) {}

  /// Forgets what was counted of the last epoch. The first one may have been begun before: of that
  /// one the state has what was counted.
  void StartEpoch(DataEpoch epoch);

  /// The worker was known to an earlier controller: what it says first it did before.
  void OnRejoined(std::uint32_t slot, Incarnation incarnation);

  /// Epochs have ended while this did not look on: what workers say next is of these. Of all that
  /// only updates that were lost are counted.
  void OnUnattended();

  /// Returns whether it tells of updates that are lost: that must not be forgotten.
  bool OnWorker(std::uint32_t slot,
                Incarnation incarnation,
                const WorkerProgress& progress,
                TimePoint now);
  void OnDataServer(std::uint32_t slot, const DataServerProgress& progress, TimePoint now);

  /// The data server no longer dispatches anything.
  void OnDataServerLost(std::uint32_t slot) { parts_.erase(slot); }

  /// Writes what workers did in this epoch into a row, but for the updates that were lost.
  void Fill(EpochResult& row) const;

  /// Acknowledged examples of the open epoch, and examples of an epoch (0: not known yet).
  [[nodiscard]] std::uint64_t counted() const { return counted_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }

  /// Of all epochs that this has metered. What data servers say first in the first of them was
  /// counted before.
  [[nodiscard]] Totals OverAllEpochs() const;

  /// Returns what was trained while this looked on: without what a process had done before it was
  /// first heard of, which may be from long ago.
  [[nodiscard]] const Totals& watched() const { return watched_; }

  /// Histogram of this epoch (WorkerProgress::batches_of_others).
  [[nodiscard]] const std::vector<std::uint64_t>& batches_of_others() const {
    return state_->totals.batches_of_others;
  }

  /// Acknowledged examples per second over the recent past; 0 while training stands: nothing has
  /// been counted for kStill, nor for twice the longest time that it took before.
  [[nodiscard]] double ExamplesPerSecond(TimePoint now) const;

  /// Mean training loss over the recent past; 0 when unknown.
  [[nodiscard]] double RecentLoss() const;

 private:
  struct WorkerTotals {
    Incarnation incarnation = 0;
    WorkerProgress last;
    bool next_is_of_before = false;
  };
  struct Sample {
    TimePoint time;
    Totals totals;  // over all epochs
  };

  void Add(const WorkerProgress& now, const WorkerProgress& before);
  bool CountLosses(std::uint32_t slot, Incarnation incarnation, std::uint64_t updates);
  void Remember(TimePoint now);
  [[nodiscard]] bool Stands(TimePoint now) const;

  JobState* state_;
  std::map<std::uint32_t, WorkerTotals> workers_;
  std::map<std::uint32_t, DataServerProgress> parts_;
  std::set<std::uint32_t> heard_;  // data servers
  DataEpoch epoch_ = 0;
  bool is_first_ = false;
  std::uint64_t counted_ = 0;
  std::uint64_t counted_before_ = 0;  // of it: before this looked on
  std::uint64_t total_ = 0;
  Totals before_;   // over the epochs before
  Totals metered_;  // over all epochs, but for what was counted
  Totals watched_;
  std::deque<Sample> recent_;
};

}  // namespace adamant::controller
