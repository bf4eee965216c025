#include "services/common/job/warm_start_of.h"

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/short_job.h"

namespace adamant::job {
namespace {

/// Of a warm start that the manifest leaves open.
constexpr std::uint64_t kBatches = 200;

}  // namespace

// Several threads that begin at once, on weights that nobody has trained, pull them apart. Two come
// together again, if there is time.
std::uint64_t WarmStartExamples(const v1::TrainingJob& job, std::uint64_t train_examples) {
  const v1::JobSpec& spec = job.spec();
  const v1::Distribution& distribution = spec.distribution();
  if (distribution.warm_start().has_examples()) {
    return static_cast<std::uint64_t>(distribution.warm_start().examples());
  }
  const std::int64_t threads =
      std::int64_t{distribution.workers()} * distribution.threads_per_worker();
  const bool few = threads == 2 && !IsShort(job, train_examples);
  if (few || distribution.workers() == 1 ||
      spec.optimiser().asynchrony() == v1::Optimiser::ASYNCHRONY_OFF) {
    return 0;
  }
  return kBatches * static_cast<std::uint64_t>(spec.data().batch_size());
}

}  // namespace adamant::job
