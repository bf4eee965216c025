#include "services/common/job/short_job.h"

#include <cmath>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::job {
namespace {

// Measured: docs/design/0009-asynchrony.md.
constexpr std::uint64_t kFewestBatches = 2'000;

}  // namespace

bool IsShort(std::uint64_t epochs, std::uint64_t train_examples, std::uint64_t batch_size) {
  const std::uint64_t of_epoch = train_examples / batch_size + (train_examples % batch_size != 0);
  return of_epoch > 0 && of_epoch <= kFewestBatches / epochs;
}

bool IsShort(const v1::TrainingJob& job, std::uint64_t train_examples) {
  const double all = static_cast<double>(train_examples);
  const double trained = std::ceil(job.spec().run_policy().epoch_completion() * all);
  return IsShort(static_cast<std::uint64_t>(job.spec().run_policy().epochs()),
                 trained < all ? static_cast<std::uint64_t>(trained) : train_examples,
                 static_cast<std::uint64_t>(job.spec().data().batch_size()));
}

}  // namespace adamant::job
