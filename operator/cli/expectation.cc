#include "operator/cli/expectation.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "operator/cli/console/text.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/optimiser/optimiser.h"
#include "services/worker/core/asynchrony.h"
#include "services/worker/rpc/worker_job.h"

namespace adamant::cli {
namespace {

// Measured: docs/bench/scaling.md.
constexpr std::uint64_t kMostThreads = 16;
constexpr std::int32_t kMostWorkersOff = 2;
constexpr std::int32_t kMostWorkersWritten = 2;
constexpr std::int32_t kMostWorkersOtherwise = 4;  // than with momentum on the worker

worker::WrittenIntervals WrittenOf(const v1::Distribution& distribution) {
  return {.fetch_every = static_cast<std::uint64_t>(distribution.fetch_every()),
          .push_every = static_cast<std::uint64_t>(distribution.push_every())};
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

std::string CorrectionText(const worker::AsynchronyOptions& options,
                           double rate,
                           const Correction& correction) {
  if (!options.corrects) {
    return "none (optimiser.asynchrony: Off)";
  }
  if (correction == Correction{}) {
    return "none once faded in, unless the weights swing (optimiser.asynchrony: Auto)";
  }
  const ParameterOptimiser written = {.kind = options.kind,
                                      .location = options.location,
                                      .rate = rate,
                                      .momentum = options.momentum};
  const RuleStep corrected = written.At(0, correction);
  std::string text = Text("rate factor %.2g: learning rate %g -> %.2g",
                          static_cast<double>(correction.rate),
                          rate,
                          static_cast<double>(corrected.rate));
  if (correction.memory > 1) {
    text +=
        Text(", momentum %g -> %.4g", options.momentum, static_cast<double>(corrected.momentum));
  }
  return text + " (optimiser.asynchrony: Auto)";
}

std::string LinesOf(const v1::JobSpec& spec, const worker::AsynchronyOptions& options) {
  const std::int32_t workers = spec.distribution().workers();
  const worker::Expectation expected =
      worker::Expect(options, static_cast<std::uint32_t>(workers), WrittenOf(spec.distribution()));
  const auto together = static_cast<std::uint64_t>(workers) * options.threads * options.batch_size;
  return Text("workers: %d x %zu %s, batches of %llu: %llu examples at a time\n",
              workers,
              options.threads,
              options.threads == 1 ? "thread" : "threads",
              Wide(options.batch_size),
              Wide(together)) +
         (workers == 1
              ? "staleness: no batches of other workers; "
              : Text("staleness: about %.0f batches of others; ", expected.staleness_batches)) +
         ExchangeText(expected) +
         "\ncorrection: " + CorrectionText(options, spec.optimiser().rate(), expected.correction) +
         "\n";
}

void WarnOfIntervals(const v1::Distribution& distribution, std::vector<std::string>& warnings) {
  const auto warn = [&](const char* field, std::int32_t written) {
    if (written > 1) {
      warnings.push_back(Text(
          "spec.distribution.%s: %d is kept as written, and many workers learn slowly with the "
          "delay that it makes; it is best left out",
          field,
          written));
    }
  };
  warn("fetchEvery", distribution.fetch_every());
  warn("pushEvery", distribution.push_every());
}

std::vector<std::string> WarningsOf(const v1::JobSpec& spec,
                                    const worker::AsynchronyOptions& options) {
  const std::int32_t workers = spec.distribution().workers();
  std::vector<std::string> warnings;
  const std::uint64_t threads = static_cast<std::uint64_t>(workers) * options.threads;
  if (threads > kMostThreads) {
    warnings.push_back(
        Text("spec.distribution.workers: %llu threads in all; more than %llu were never measured",
             Wide(threads),
             Wide(kMostThreads)));
  }
  if (workers > kMostWorkersOff && !options.corrects) {
    warnings.emplace_back(
        "spec.optimiser.asynchrony: Off takes the numbers as they are: with momentum, more than "
        "two workers then diverge easily");
  }
  if (workers > kMostWorkersWritten) {
    WarnOfIntervals(spec.distribution(), warnings);
  }
  if (workers > kMostWorkersOtherwise) {
    if (options.kind != OptimiserKind::kMomentum || options.momentum == 0) {
      warnings.emplace_back(
          "spec.optimiser: without momentum, many workers end lower than one "
          "(docs/bench/scaling.md)");
    } else if (options.location == OptimiserLocation::kServer) {
      warnings.emplace_back(
          "spec.optimiser.location: with momentum on the servers, many workers end lower than with "
          "Worker (docs/bench/scaling.md)");
    }
  }
  return warnings;
}

}  // namespace

ExpectationText ExpectationOf(v1::TrainingJob job) {
  job.mutable_spec()->mutable_optimiser()->clear_schedule();  // it may count epochs
  const absl::StatusOr<worker::WorkerJob> read = worker::ReadJob(job, std::nullopt);
  if (!read.ok()) {
    return {.lines = "", .warnings = {std::string(read.status().message())}};
  }
  const worker::AsynchronyOptions options = worker::AsynchronyOptionsOf(read->replica, read->plan);
  if (job.spec().distribution().workers() == 1 && options.threads == 1) {
    return {};
  }
  return {.lines = LinesOf(job.spec(), options), .warnings = WarningsOf(job.spec(), options)};
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  std::fflush(stdout);
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
}

}  // namespace adamant::cli
