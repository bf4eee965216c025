#include "services/common/job/warm_start_of.h"

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/short_job.h"

namespace adamant::job {
namespace {

/// Of a warm start that the manifest leaves open.
constexpr std::uint64_t kBatches = 200;

constexpr std::int64_t kMostTogether = 2;  // threads; measured: docs/bench/scaling.md

std::int64_t ThreadsOf(const v1::Distribution& distribution) {
  return std::int64_t{distribution.workers()} * distribution.threads_per_worker();
}

bool IsCorrected(const v1::TrainingJob& job) {
  return job.spec().optimiser().asynchrony() != v1::Optimiser::ASYNCHRONY_OFF;
}

}  // namespace

// Several threads that begin at once, on weights that nobody has trained, pull them apart. Two come
// together again, if there is time.
std::uint64_t WarmStartExamples(const v1::TrainingJob& job, std::uint64_t train_examples) {
  const v1::JobSpec& spec = job.spec();
  const v1::Distribution& distribution = spec.distribution();
  if (distribution.warm_start().has_examples()) {
    return static_cast<std::uint64_t>(distribution.warm_start().examples());
  }
  const bool few = ThreadsOf(distribution) == kMostTogether && !IsShort(job, train_examples);
  if (few || distribution.workers() == 1 || !IsCorrected(job)) {
    return 0;
  }
  return kBatches * static_cast<std::uint64_t>(spec.data().batch_size());
}

bool FadesInUntrained(const v1::TrainingJob& job) {
  const v1::Distribution& distribution = job.spec().distribution();
  const v1::WarmStart& written = distribution.warm_start();
  return written.has_examples() && written.examples() == 0 && distribution.workers() > 1 &&
         ThreadsOf(distribution) > kMostTogether && IsCorrected(job);
}

}  // namespace adamant::job
