#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "services/worker/core/sync/asynchrony/staleness.h"
#include "services/worker/core/sync/synchroniser.h"

namespace adamant::bench {

/// Pushes by the batches of others between the fetch they were computed from and themselves
/// (worker::StalenessHistogram).
using StalenessCounts = std::array<std::uint64_t, worker::StalenessHistogram::kBuckets>;

/// Their mean as metrics.csv has it: a bucket counts as its middle. 0 where nothing is counted.
double MeanOf(const StalenessCounts& counts);

/// A virtual job at a moment. Sums are over the whole job, workers that have left among them.
struct Moment {
  double epochs = 0;           ///< acknowledged
  double steps = 0;            ///< of the virtual clock
  std::uint64_t examples = 0;  ///< acknowledged
  double loss_sum = 0;         ///< of the acknowledged examples
  StalenessCounts staleness{};
  std::vector<worker::SynchroniserStatistics> workers = {};  ///< of those there are
};

/// What the data says about a model that has learned nothing.
struct Chance {
  std::int64_t classes = 2;
  std::uint64_t examples = 0;       ///< to evaluate on
  std::uint64_t most_frequent = 0;  ///< of these, in the class that has most
};

/// Lines of JSON that tell of a virtual job, and whether it has diverged. A stretch is what was
/// acknowledged since the evaluation before.
class StaleReport {
 public:
  /// `target`: top-1 whose first time the last line tells.
  StaleReport(const Chance& chance, double target) : chance_(chance), target_(target) {}

  /// The line of an evaluation: epochs, steps, top1; loss and staleness_batches, means of the
  /// stretch; workers, and means over them now of gap_batches, the staleness (the moving mean of
  /// what staleness_batches counts in powers of two), gain, rate_factor, memory_factor and
  /// exchange_every. Means of nothing are null.
  nlohmann::json Evaluated(const Moment& now, double top1);

  /// InvalidArgument where what was evaluated last has diverged: the loss of its stretch is not
  /// finite or far above that of naming classes at random, or top-1 has fallen to less than half of
  /// the best, or to chance. As a job's controller judges an epoch
  /// (docs/design/0010-divergence.md), but by what can be seen here.
  [[nodiscard]] absl::Status Judge() const;

  /// InvalidArgument where the last model is no better than one that always names the most frequent
  /// class; a job fails with such a model.
  [[nodiscard]] absl::Status JudgeEnd() const;

  /// The last line of a job that has trained everything: `summary`; top1, best_top1, at_chance
  /// (as JudgeEnd), staleness_batches of all pushes, examples, steps, examples_to_target (null if
  /// not reached).
  [[nodiscard]] nlohmann::json Summary(const Moment& now) const;

  /// The last line of one that could not go on: `diverged`, why, and where.
  [[nodiscard]] static nlohmann::json Diverged(const Moment& now, const absl::Status& why);

 private:
  [[nodiscard]] bool IsAtChance(double top1) const;

  const Chance chance_;
  const double target_;
  Moment last_;  // without workers
  double loss_ = 0;
  double top1_ = 0;
  double best_before_ = 0;  // before what was evaluated last
  std::optional<std::uint64_t> examples_to_target_;
};

}  // namespace adamant::bench
