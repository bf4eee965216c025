#include "operator/cli/warnings/schedule_warning.h"

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/cli/console/text.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::cli {
namespace {

constexpr double kNextToNothing = 0.001;  // of the rate
constexpr std::uint64_t kLooks = 1'000;   // spread over the job
constexpr std::uint64_t kFewestIdle =
    100;  // of them, at the end: a schedule that falls to 0 has few

}  // namespace

std::string ScheduleWarning(v1::TrainingJob job) {
  const DataEpoch epoch = local::ExamplesOf(job.spec().data().train()).value_or(0);
  const std::int32_t epochs = job.spec().run_policy().epochs();
  if (epoch == 0 || epochs <= 0) {
    return "";
  }
  job::CountProgressInExamples(epoch, 0, job);
  const absl::StatusOr<std::vector<ParameterOptimiser>> optimisers =
      job::OptimisersOf(job, std::vector<Parameter>(1));
  if (!optimisers.ok()) {
    return "";
  }
  const Schedule& schedule = optimisers->front().schedule;
  const double job_examples = static_cast<double>(epoch) * epochs;
  std::uint64_t idle = 0;
  while (idle < kLooks &&
         schedule.FactorAt(static_cast<std::uint64_t>(
             job_examples * static_cast<double>(kLooks - idle) / kLooks)) < kNextToNothing) {
    ++idle;
  }
  if (idle < kFewestIdle) {
    return "";
  }
  return Text(
      "spec.optimiser.schedule: after %.3g of %d %s the learning rate is next to 0 for the "
      "rest of the job, which learns nothing then: %s",
      static_cast<double>(epochs) * static_cast<double>(kLooks - idle + 1) / kLooks,
      epochs,
      epochs == 1 ? "epoch" : "epochs",
      schedule.kind == Schedule::Kind::kStep ? "raise decay or every, or train fewer epochs"
                                             : "raise over or final, or train fewer epochs");
}

}  // namespace adamant::cli
