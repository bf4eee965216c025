#include "tests/bench/stale/stale_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>

namespace adamant::bench {
namespace {

// As a job's controller has them (operator/core/diagnosis/divergence_watch.h, chance.h).
constexpr double kFarAbove = 3;
constexpr double kFallenShare = 0.5;
constexpr std::uint64_t kFewestJudged = 1'000;
constexpr double kDeviations = 3;

StalenessCounts Difference(const StalenessCounts& now, const StalenessCounts& before) {
  StalenessCounts counts{};
  std::ranges::transform(now, before, counts.begin(), std::minus<>());
  return counts;
}

std::uint64_t Sum(const StalenessCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// JSON has no NaN and no infinity; null stands for what is unknown.
nlohmann::json Number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nullptr;
}

nlohmann::json Staleness(const StalenessCounts& counts) {
  return Sum(counts) > 0 ? nlohmann::json(MeanOf(counts)) : nullptr;
}

template <class Value>
nlohmann::json MeanOver(const std::vector<worker::SynchroniserStatistics>& workers, Value value) {
  double sum = 0;
  for (const worker::SynchroniserStatistics& statistics : workers) {
    sum += static_cast<double>(value(statistics));
  }
  return Number(sum / static_cast<double>(workers.size()));
}

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

}  // namespace

double MeanOf(const StalenessCounts& counts) {
  double sum = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const double least = std::exp2(static_cast<double>(i) - 1);
    sum += static_cast<double>(counts[i]) * (least + 2 * least - 1) / 2;
  }
  const std::uint64_t pushes = Sum(counts);
  return pushes > 0 ? sum / static_cast<double>(pushes) : 0;
}

nlohmann::json StaleReport::Evaluated(const Moment& now, double top1) {
  loss_ = (now.loss_sum - last_.loss_sum) / static_cast<double>(now.examples - last_.examples);
  best_before_ = std::max(best_before_, top1_);
  top1_ = top1;
  if (!examples_to_target_.has_value() && top1 >= target_) {
    examples_to_target_ = now.examples;
  }
  nlohmann::json line = {
      {"epochs", now.epochs},
      {"steps", now.steps},
      {"top1", top1},
      {"loss", Number(loss_)},
      {"staleness_batches", Staleness(Difference(now.staleness, last_.staleness))},
      {"workers", now.workers.size()},
      {"gap_batches",
       MeanOver(now.workers, [](const auto& each) { return each.staleness_batches; })},
      {"gain", MeanOver(now.workers, [](const auto& each) { return each.gain; })},
      {"rate_factor", MeanOver(now.workers, [](const auto& each) { return each.correction.rate; })},
      {"memory_factor",
       MeanOver(now.workers, [](const auto& each) { return each.correction.memory; })},
      {"exchange_every",
       MeanOver(now.workers, [](const auto& each) { return each.exchange_every; })}};
  last_ = now;
  last_.workers.clear();
  return line;
}

absl::Status StaleReport::Judge() const {
  const double first = std::log(static_cast<double>(chance_.classes));
  std::string why;
  if (!std::isfinite(loss_)) {
    why = "the training loss is not finite";
  } else if (loss_ > kFarAbove * first) {
    why = "the training loss is " + Short(loss_) + ", that of a model that knows nothing is " +
          Short(first);
  } else if (chance_.examples >= kFewestJudged && top1_ < kFallenShare * best_before_) {
    why = "top-1 has fallen from " + Short(best_before_) + " to " + Short(top1_);
  } else if (IsAtChance(top1_) && best_before_ > 0 && !IsAtChance(best_before_)) {
    why = "top-1 " + Short(top1_) + " is no better than naming the most frequent class";
  }
  return why.empty() ? absl::OkStatus()
                     : absl::InvalidArgumentError("training diverged: " + why +
                                                  "; try a lower rate, or a warm-up");
}

absl::Status StaleReport::JudgeEnd() const {
  return IsAtChance(top1_)
             ? absl::InvalidArgumentError(
                   "the model is no better than naming the most frequent class: top-1 " +
                   Short(top1_) + "; try another rate, or more epochs")
             : absl::OkStatus();
}

bool StaleReport::IsAtChance(double top1) const {
  const auto examples = static_cast<double>(chance_.examples);
  const double share = static_cast<double>(chance_.most_frequent) / examples;
  return chance_.examples >= kFewestJudged &&
         top1 <= share + kDeviations * std::sqrt(share * (1 - share) / examples);
}

nlohmann::json StaleReport::Summary(const Moment& now) const {
  return {{"summary", true},
          {"top1", top1_},
          {"best_top1", std::max(best_before_, top1_)},
          {"at_chance", IsAtChance(top1_)},
          {"staleness_batches", Staleness(now.staleness)},
          {"examples", now.examples},
          {"steps", now.steps},
          {"examples_to_target",
           examples_to_target_.has_value() ? nlohmann::json(*examples_to_target_) : nullptr}};
}

nlohmann::json StaleReport::Diverged(const Moment& now, const absl::Status& why) {
  return {{"diverged", true},
          {"why", why.message()},
          {"epochs", now.epochs},
          {"examples", now.examples},
          {"steps", now.steps}};
}

}  // namespace adamant::bench
