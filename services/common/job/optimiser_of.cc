#include "services/common/job/optimiser_of.h"

#include <algorithm>
#include <cmath>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

namespace adamant::job {
namespace {

void CountInExamples(std::uint64_t training_examples, v1::Progress& progress) {
  if (progress.has_epochs()) {
    const double examples = std::ceil(progress.epochs() * static_cast<double>(training_examples));
    progress.set_examples(std::max<std::int64_t>(1, static_cast<std::int64_t>(examples)));
  }
}

absl::StatusOr<double> Examples(const v1::Progress& progress) {
  if (!progress.has_examples()) {
    return absl::FailedPreconditionError(
        "spec.optimiser.schedule counts epochs, but a running job counts examples");
  }
  return static_cast<double>(progress.examples());
}

absl::StatusOr<Schedule> ScheduleOf(const v1::Schedule& from) {
  Schedule schedule;
  switch (from.kind()) {
    case v1::Schedule::KIND_STEP:
      schedule.kind = Schedule::Kind::kStep;
      schedule.decay = from.decay();
      break;
    case v1::Schedule::KIND_LINEAR:
      schedule.kind = Schedule::Kind::kLinear;
      break;
    case v1::Schedule::KIND_COSINE:
      schedule.kind = Schedule::Kind::kCosine;
      break;
    default:
      break;
  }
  if (schedule.kind == Schedule::Kind::kStep) {
    ADAMANT_ASSIGN_OR_RETURN(schedule.every, Examples(from.every()));
  } else if (schedule.kind != Schedule::Kind::kConstant) {
    schedule.final_factor = from.final();
    ADAMANT_ASSIGN_OR_RETURN(schedule.over, Examples(from.over()));
  }
  if (from.has_warm_up()) {
    ADAMANT_ASSIGN_OR_RETURN(schedule.warm_up, Examples(from.warm_up()));
  }
  return schedule;
}

OptimiserKind KindOf(v1::Optimiser::Kind kind) {
  switch (kind) {
    case v1::Optimiser::KIND_MOMENTUM:
      return OptimiserKind::kMomentum;
    case v1::Optimiser::KIND_ADAGRAD:
      return OptimiserKind::kAdagrad;
    default:
      return OptimiserKind::kSgd;
  }
}

}  // namespace

void CountProgressInExamples(std::uint64_t training_examples,
                             std::uint64_t epochs,
                             v1::TrainingJob& job) {
  v1::Schedule& schedule = *job.mutable_spec()->mutable_optimiser()->mutable_schedule();
  const bool ends =
      schedule.kind() == v1::Schedule::KIND_LINEAR || schedule.kind() == v1::Schedule::KIND_COSINE;
  if (ends && !schedule.has_over()) {
    schedule.mutable_over()->set_epochs(epochs > 0 ? static_cast<double>(epochs)
                                                   : job.spec().run_policy().epochs());
  }
  for (v1::Progress* progress : {schedule.has_every() ? schedule.mutable_every() : nullptr,
                                 schedule.has_over() ? schedule.mutable_over() : nullptr,
                                 schedule.has_warm_up() ? schedule.mutable_warm_up() : nullptr}) {
    if (progress != nullptr) {
      CountInExamples(training_examples, *progress);
    }
  }
}

absl::StatusOr<std::vector<ParameterOptimiser>> OptimisersOf(
    const v1::TrainingJob& job, std::span<const Parameter> parameters) {
  const v1::Optimiser& optimiser = job.spec().optimiser();
  ParameterOptimiser common;
  common.kind = KindOf(optimiser.kind());
  common.location = optimiser.location() == v1::Optimiser::LOCATION_SERVER
                        ? OptimiserLocation::kServer
                        : OptimiserLocation::kWorker;
  common.rate = optimiser.rate();
  common.momentum = optimiser.momentum();
  common.epsilon = optimiser.epsilon();
  common.weight_decay = optimiser.weight_decay();
  ADAMANT_ASSIGN_OR_RETURN(common.schedule, ScheduleOf(optimiser.schedule()));

  std::vector<ParameterOptimiser> result;
  for (const Parameter& parameter : parameters) {
    ParameterOptimiser& own = result.emplace_back(common);
    const auto layer = std::find_if(
        optimiser.layers().begin(), optimiser.layers().end(), [&](const v1::LayerOptimiser& l) {
          return l.layer() == parameter.layer;
        });
    if (layer != optimiser.layers().end()) {
      own.rate = layer->has_rate() ? layer->rate() : own.rate;
      own.weight_decay = layer->has_weight_decay() ? layer->weight_decay() : own.weight_decay;
    }
    own.weight_decay = parameter.decays ? own.weight_decay : 0;
  }
  return result;
}

}  // namespace adamant::job
