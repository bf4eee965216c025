#include "operator/cli/warnings/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "operator/cli/console/output_file.h"
#include "operator/cli/console/text.h"
#include "operator/cli/warnings/distribution_warning.h"
#include "operator/cli/warnings/net_warning.h"
#include "operator/cli/warnings/rate_warning.h"
#include "operator/cli/warnings/schedule_warning.h"
#include "operator/cli/warnings/transformations_warning.h"
#include "operator/core/diagnosis/job_length.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/warm_start_of.h"
#include "services/common/model/model.h"
#include "services/common/optimiser/optimiser.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/sync/asynchrony/asynchrony.h"
#include "services/worker/rpc/job/worker_job.h"

namespace adamant::cli {
namespace {

// Measured: docs/bench/scaling.md.
constexpr std::uint64_t kMostThreads = 16;
constexpr std::int32_t kMostWorkersOff = 2;
constexpr std::int32_t kMostWorkersWritten = 2;
constexpr std::int32_t kMostWorkersWithoutMomentum = 4;
constexpr std::int32_t kMostWorkersWithoutMomentumDense = 1;  // no convolutions
constexpr double kMostMomentum = 0.95;
constexpr double kMostRateTimesMemory = 0.5;

constexpr double kLeastCompletion = 0.5;

constexpr int kDigitsOfMomentum = 4;

// Of a job whose workers have faded in before its end: docs/design/0009-asynchrony.md.
constexpr std::uint64_t kFewestBatches = 1'600;
constexpr std::uint64_t kFewestBatchesOfThread = 200;

// The same of nets without convolutions, which a job that is too short costs more: with as many no
// virtual workers were seen more than a point below one. Real ones that share two processors may
// be.
constexpr std::uint64_t kFewestBatchesDense = 5'600;
constexpr std::uint64_t kFewestBatchesOfThreadDense = 800;

/// What the texts follow from.
struct Facts {
  const v1::JobSpec& spec;
  worker::AsynchronyOptions options;
  worker::Expectation expected;
  std::uint64_t epoch_batches = 0;       // with which one may end; 0: not known
  std::uint64_t warm_start_batches = 0;  // that one worker trains alone
  bool dense = false;                    // the net has no convolutions
  bool fades_in_untrained = false;       // job::FadesInUntrained
  std::uint64_t push_bytes = 0;          // of all threads of a worker together

  [[nodiscard]] std::uint64_t batches() const {
    return static_cast<std::uint64_t>(spec.run_policy().epochs()) * epoch_batches;
  }
  [[nodiscard]] bool one_trains_all() const {
    return batches() > 0 && batches() <= warm_start_batches;
  }
  [[nodiscard]] std::int32_t workers() const { return spec.distribution().workers(); }
  [[nodiscard]] std::uint64_t threads() const {
    return static_cast<std::uint64_t>(workers()) * options.threads;
  }
};

std::uint64_t BatchesOf(std::uint64_t examples, std::uint64_t batch_size) {
  return (examples + batch_size - 1) / batch_size;
}

// Of an epoch's examples so many at least are trained.
std::uint64_t Completed(const v1::TrainingJob& job, std::uint64_t examples) {
  return static_cast<std::uint64_t>(
      std::ceil(job.spec().run_policy().epoch_completion() * static_cast<double>(examples)));
}

std::string Every(std::uint64_t batches) {
  return batches == 1 ? "every batch" : Text("every %llu batches", Wide(batches));
}

std::string ExchangeText(const worker::Expectation& expected) {
  return expected.fetch_every == expected.push_every
             ? "an exchange after " + Every(expected.push_every)
             : "a fetch after " + Every(expected.fetch_every) + ", a push after " +
                   Every(expected.push_every);
}

RuleStep Corrected(const Facts& facts, const Correction& correction) {
  const ParameterOptimiser written = {.kind = facts.options.kind,
                                      .location = facts.options.location,
                                      .rate = facts.spec.optimiser().rate(),
                                      .momentum = facts.options.momentum};
  return written.At(0, correction);
}

/// As many digits as say how far it is from 1.
std::string MomentumText(float momentum) {
  int digits = kDigitsOfMomentum;
  std::string text;
  do {
    text = Text("%.*g", digits++, static_cast<double>(momentum));
  } while (text == "1" && digits <= std::numeric_limits<float>::max_digits10);
  return text;
}

// The first batches, before the gain has risen.
std::string StartText(const Facts& facts) {
  if (facts.one_trains_all()) {
    return Text("start: one worker trains all %llu batches alone\n", Wide(facts.batches()));
  }
  std::string text;
  if (facts.warm_start_batches > 0) {
    text = Text("one worker alone for %llu %s at learning rate %g; then ",
                Wide(facts.warm_start_batches),
                facts.warm_start_batches == 1 ? "batch" : "batches",
                facts.spec.optimiser().rate());
  }
  if (!facts.options.corrects) {
    return text.empty() ? "" : "start: " + text + "all\n";
  }
  Correction first = facts.expected.correction;
  first.rate /= static_cast<float>(facts.workers());
  const RuleStep corrected = Corrected(facts, first);
  text += Text(
      "a gain of 1/%d: learning rate %.2g", facts.workers(), static_cast<double>(corrected.rate));
  if (first.memory != 1) {
    text += ", momentum " + MomentumText(corrected.momentum);
  }
  return "start: " + text + "\n";
}

std::string CorrectionText(const Facts& facts) {
  const Correction& correction = facts.expected.correction;
  if (!facts.options.corrects) {
    return "none (optimiser.asynchrony: Off)";
  }
  if (correction == Correction{}) {
    return "none once faded in, unless the weights swing (optimiser.asynchrony: Auto)";
  }
  const RuleStep corrected = Corrected(facts, correction);
  std::string text = Text("staleness factor %.2g, once the gain is 1: learning rate %g -> %.2g",
                          static_cast<double>(correction.rate),
                          facts.spec.optimiser().rate(),
                          static_cast<double>(corrected.rate));
  if (const std::string momentum = MomentumText(corrected.momentum); correction.memory != 1) {
    text += Text(", momentum %g -> ", facts.options.momentum) + momentum;
  }
  return text + " (optimiser.asynchrony: Auto)";
}

// Of two workers in a short job (docs/operations.md).
std::string SpeedText(const Facts& facts) {
  const bool short_of_two = facts.workers() == 2 && facts.options.exchange_beside_one == 1 &&
                            facts.expected.push_every == 1 && !facts.one_trains_all();
  return short_of_two ? "in a job this short the two meet after every batch, and together train up "
                        "to three times slower than one worker alone (workers: 1)"
                      : "";
}

std::string StalenessText(const Facts& facts) {
  return (facts.workers() == 1 ? "staleness: no batches of other workers; "
                               : Text("staleness: about %.0f batches of others on average, on "
                                      "processors of their own; ",
                                      facts.expected.staleness_batches)) +
         ExchangeText(facts.expected) + "\n";
}

std::string LinesOf(const Facts& facts) {
  const std::string workers =
      Text("workers: %d x %zu %s, batches of %llu: %llu examples at a time\n",
           facts.workers(),
           facts.options.threads,
           facts.options.threads == 1 ? "thread" : "threads",
           Wide(facts.options.batch_size),
           Wide(facts.threads() * facts.options.batch_size));
  if (facts.workers() > 1 && facts.one_trains_all()) {  // which no other joins
    return workers + StartText(facts);
  }
  const std::string speed = SpeedText(facts);
  return workers + StalenessText(facts) + (speed.empty() ? "" : "speed: " + speed + "\n") +
         (facts.workers() == 1 ? "" : StartText(facts)) + "correction: " + CorrectionText(facts) +
         "\n";
}

void WarnOfThreads(const Facts& facts, std::vector<std::string>& warnings) {
  if (facts.threads() > kMostThreads) {
    const bool workers_alone = static_cast<std::uint64_t>(facts.workers()) > kMostThreads;
    warnings.push_back(
        Text("spec.distribution.%s: %llu threads in all; more than %llu were never measured",
             workers_alone ? "workers" : "threadsPerWorker",
             Wide(facts.threads()),
             Wide(kMostThreads)));
  }
}

std::uint64_t FewestBatches(const Facts& facts) {
  const std::uint64_t threads = facts.threads();
  if (!facts.dense) {
    return std::max(kFewestBatches, kFewestBatchesOfThread * threads);
  }
  return std::max(kFewestBatchesDense, kFewestBatchesOfThreadDense * threads);
}

// Workers that fade in train little of a short job at its rate. In the words of a job that ends so.
void WarnOfShortJob(const Facts& facts, std::vector<std::string>& warnings) {
  const controller::JobLength length = {.batches = facts.batches(),
                                        .batch_size = facts.options.batch_size,
                                        .threads = facts.threads()};
  const std::string few = "spec.distribution.workers: " + controller::ShortText(length);
  const std::string longer = ": try " + controller::TryLongerText(length);
  const std::uint64_t fewest = FewestBatches(facts);
  if (facts.one_trains_all()) {
    warnings.push_back(few +
                       ", no more than one worker trains alone before the others begin; these only "
                       "wait, and with one worker it is the same" +
                       longer);
  } else if (facts.workers() > 1 && facts.options.corrects && length.batches > 0 &&
             length.batches < fewest) {
    warnings.push_back(few + ", which fade in; below about " + std::to_string(fewest) +
                       " it may end more than a point lower than with one worker" + longer);
  }
}

void WarnOfCompletion(const Facts& facts, std::vector<std::string>& warnings) {
  const double completion = facts.spec.run_policy().epoch_completion();
  if (completion < kLeastCompletion) {
    warnings.push_back(
        Text("spec.runPolicy.epochCompletion: with %g each epoch may end when most of its examples "
             "are not trained; it is meant to leave out the last few, which slow workers hold",
             completion));
  }
}

void WarnOfWarmStart(const Facts& facts, std::vector<std::string>& warnings) {
  if (facts.fades_in_untrained) {
    warnings.push_back(
        Text("spec.distribution.warmStart.examples: 0 lets %llu threads fade in on weights that "
             "nobody has trained, and these may then learn little or nothing; it is best left out",
             Wide(facts.threads())));
  }
}

// In a short job two would meet after every batch.
std::int32_t MostWorkersWritten(const Facts& facts) {
  return facts.options.exchange_beside_one == 1 ? 1 : kMostWorkersWritten;
}

void WarnOfInterval(const Facts& facts,
                    const char* field,
                    std::int32_t written,
                    std::vector<std::string>& warnings) {
  const std::uint64_t share = facts.epoch_batches / facts.threads();
  if (facts.epoch_batches > 0 && static_cast<std::uint64_t>(written) > share) {
    warnings.push_back(
        Text("spec.distribution.%s: %d is more than the %llu %s that a thread trains in an epoch; "
             "it is best left out",
             field,
             written,
             Wide(share),
             share == 1 ? "batch" : "batches"));
  } else if (written > 1 && facts.workers() > MostWorkersWritten(facts)) {
    warnings.push_back(
        Text("spec.distribution.%s: %d is kept as written, and %s slowly with the delay that it "
             "makes; it is best left out",
             field,
             written,
             facts.workers() > kMostWorkersWritten ? "many workers learn"
                                                   : "two workers learn so short a job"));
  }
}

// One worker bears a momentum near 1 where the rate is as much lower.
bool MovesLittleAlone(const Facts& facts) {
  const double memory = 1 / (1 - facts.options.momentum);
  return facts.threads() == 1 && facts.spec.optimiser().rate() * memory <= kMostRateTimesMemory;
}

void WarnOfOptimiser(const Facts& facts, std::vector<std::string>& warnings) {
  const bool has_momentum =
      facts.options.kind == OptimiserKind::kMomentum && facts.options.momentum > 0;
  const std::int32_t most =
      facts.dense ? kMostWorkersWithoutMomentumDense : kMostWorkersWithoutMomentum;
  if (!has_momentum && facts.workers() > most) {
    warnings.emplace_back(
        facts.dense
            ? "spec.optimiser: without momentum, several workers of a net without "
              "convolutions end up to 3 points lower than one (docs/design/0009-asynchrony.md)"
            : "spec.optimiser: without momentum, many workers end lower than one "
              "(docs/bench/scaling.md)");
  } else if (has_momentum && facts.options.location == OptimiserLocation::kServer &&
             facts.workers() > 1) {
    warnings.emplace_back(
        "spec.optimiser.location: with momentum on the servers, several workers end lower than "
        "one, by some points in short jobs; with Worker they do not (docs/bench/scaling.md)");
  }
  if (has_momentum && facts.options.momentum > kMostMomentum && !MovesLittleAlone(facts)) {
    warnings.push_back(
        Text("spec.optimiser.momentum: with %.4g training swings, and may diverge or end far below "
             "what 0.9 reaches; up to %.4g was measured",
             facts.options.momentum,
             kMostMomentum));
  }
}

std::vector<std::string> WarningsOf(const Facts& facts) {
  const v1::Distribution& distribution = facts.spec.distribution();
  std::vector<std::string> warnings;
  WarnOfThreads(facts, warnings);
  WarnOfShortJob(facts, warnings);
  WarnOfCompletion(facts, warnings);
  WarnOfWarmStart(facts, warnings);
  if (facts.workers() > kMostWorkersOff && !facts.options.corrects) {
    warnings.emplace_back(
        "spec.optimiser.asynchrony: Off takes the numbers as they are: with momentum, more than "
        "two workers then diverge easily");
  }
  WarnOfInterval(facts, "fetchEvery", distribution.fetch_every(), warnings);
  WarnOfInterval(facts, "pushEvery", distribution.push_every(), warnings);
  WarnOfOptimiser(facts, warnings);
  std::ranges::move(RateWarnings(facts.spec, facts.batches()), std::back_inserter(warnings));
  return warnings;
}

Facts FactsOf(const v1::TrainingJob& job, const worker::WorkerJob& read, std::uint64_t examples) {
  const worker::AsynchronyOptions options = worker::AsynchronyOptionsOf(read.options, read.plan);
  const std::uint64_t alone = job::WarmStartExamples(job, examples);
  return {.spec = job.spec(),
          .options = options,
          .expected = worker::Expect(
              options, static_cast<std::uint32_t>(job.spec().distribution().workers())),
          .epoch_batches = BatchesOf(Completed(job, examples), options.batch_size),
          .warm_start_batches = BatchesOf(alone, options.batch_size),
          .dense = std::ranges::none_of(
              job::NetOf(job).layers,
              [](const model::Layer& layer) { return layer.kind == model::LayerKind::kConv2d; }),
          .fades_in_untrained = job::FadesInUntrained(job),
          .push_bytes = worker::Accumulator::BytesOf(read.plan) * options.threads};
}

}  // namespace

ExpectationText ExpectationOf(v1::TrainingJob job) {
  const std::string schedule = ScheduleWarning(job);
  job.mutable_spec()->mutable_optimiser()->clear_schedule();  // it may count epochs
  const std::uint64_t examples = local::ExamplesOf(job.spec().data().train()).value_or(0);
  const absl::StatusOr<worker::WorkerJob> read = worker::ReadJob(job, examples, std::nullopt);
  if (!read.ok()) {
    return {.lines = "", .speed = "", .warnings = {std::string(read.status().message())}};
  }
  const Facts facts = FactsOf(job, *read, examples);
  ExpectationText text = {.lines = facts.threads() == 1 ? "" : LinesOf(facts),
                          .speed = SpeedText(facts),
                          .warnings = WarningsOf(facts)};
  for (const std::string& warning : {ShareWarning(job.spec().distribution()),
                                     RetainWarning(job.spec().distribution(), facts.push_bytes),
                                     schedule,
                                     NormaliseWarning(job),
                                     ShiftWarning(job),
                                     NetWarning(job)}) {
    if (!warning.empty()) {
      text.warnings.push_back(warning);
    }
  }
  return text;
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  FlushOutput().IgnoreError();
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", InLines(warning).c_str());
  }
}

}  // namespace adamant::cli
