#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/optimiser/optimiser.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/base/update_plan.h"
#include "services/worker/core/base/worker_options.h"
#include "services/worker/core/learner/guidance.h"
#include "services/worker/core/sync/asynchrony/gain_control.h"
#include "services/worker/core/sync/asynchrony/staleness_meter.h"

namespace adamant::worker {

/// Intervals in batches of a thread that a user wrote, and that are kept; 0: the worker chooses.
struct WrittenIntervals {
  std::uint64_t fetch_every = 0;
  std::uint64_t push_every = 0;
};

struct AsynchronyOptions {
  bool corrects = true;              ///< else only the interval is chosen
  std::size_t threads = 1;           ///< of this worker
  std::uint64_t batch_size = 1;      ///< examples
  WrittenIntervals written = {};     ///< what of the interval is not chosen
  std::uint64_t exchange_every = 8;  ///< what a worker alone does where it chooses, and the most
  std::uint64_t exchange_beside_one = 8;  ///< likewise, beside about one other thread
  OptimiserKind kind = OptimiserKind::kSgd;
  OptimiserLocation location = OptimiserLocation::kWorker;
  double momentum = 0;
};

/// Batches of a thread between two exchanges of a worker that trains alone, where the manifest says
/// nothing. Momentum on the servers is stepped once a push: the seldomer, the larger each step.
constexpr std::uint64_t IntervalAlone(bool momentum_on_servers) {
  return momentum_on_servers ? 2 : 8;
}

AsynchronyOptions AsynchronyOptionsOf(const WorkerOptions& worker, const UpdatePlan& plan);

/// Values that Asynchrony comes to.
struct Expectation {
  double staleness_batches = 0;  ///< of others, between a fetch and the push computed from it
  std::uint64_t fetch_every = 1;
  std::uint64_t push_every = 1;
  Correction correction = {};

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

/// Returns what so many equally fast workers come to whose exchanges take as long as a step, once
/// the gain has risen to 1. An estimate: on real machines the delay differs.
Expectation Expect(const AsynchronyOptions& options, std::uint32_t workers);

/// Adjustment of the numbers that a user wrote for one worker, while others train beside it:
/// follows the staleness measured now, so that workers may come, go, be slow or have several
/// threads. While nobody else has trained, nothing is corrected, and nothing depends on time.
/// Threads: one at a time.
/// Source: docs/design/0009-asynchrony.md.
class Asynchrony {
 public:
  Asynchrony(const AsynchronyOptions& options, const UpdatePlan& plan, std::size_t shards);

  void OnWorkers(std::uint32_t workers) { workers_ = std::max(workers, 1U); }

  /// Sets whether pushes are to go as seldom as those of a worker alone: there is hardly room to
  /// retain more.
  void HoldBack(bool hold_back) { hold_back_ = hold_back; }

  StalenessMeter& meter() { return meter_; }
  [[nodiscard]] const StalenessMeter& meter() const { return meter_; }

  /// All of a fetch is there; `values` are the servers' own.
  void OnFetched(std::span<const float> values, Clock::TimePoint now);

  /// The job has trained long without this worker, whoever did and whenever: all workers of a job
  /// that goes on from disk begin so, and at once.
  void OnOutdated() { outdated_ = true; }

  /// The fetched values replaced whatever the worker had.
  void OnRenewed();

  /// The factor on a push in which the process stood still for this long: 1, or less when others
  /// went far ahead meanwhile.
  [[nodiscard]] float FreshnessAfter(Clock::Duration stood_still) const;

  [[nodiscard]] const Guidance& guidance() const { return guidance_; }

  /// Others have trained beside this worker.
  [[nodiscard]] bool active() const { return active_; }

  /// The staleness: batches of others between a fetch and the push computed from it, a moving mean.
  [[nodiscard]] double staleness_batches() const;
  /// The share of the rate that GainControl leaves.
  [[nodiscard]] double gain() const;

 private:
  void Activate();
  void NoteTime(Clock::TimePoint now);
  void ControlGain(std::span<const float> values);
  void Correct();
  void ChooseInterval();
  [[nodiscard]] std::uint64_t FetchEvery() const;
  [[nodiscard]] std::uint64_t PushEvery() const;
  [[nodiscard]] double OthersPerOwn() const;
  [[nodiscard]] double Crowd() const;
  [[nodiscard]] double DelaySteps() const;
  [[nodiscard]] double MostBesideOne(double others_per_own) const;

  const AsynchronyOptions options_;
  StalenessMeter meter_;
  GainControl gain_;
  Guidance guidance_;
  std::uint32_t workers_ = 1;
  bool active_ = false;
  bool outdated_ = false;
  bool hold_back_ = false;
  std::optional<Clock::TimePoint> fetched_at_;
  double interval_seconds_ = 0;   // between two fetches, a moving mean
  std::uint64_t unobserved_ = 0;  // fetches that GainControl has not seen since the last it saw
};

}  // namespace adamant::worker
