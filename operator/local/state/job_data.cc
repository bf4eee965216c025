#include "operator/local/state/job_data.h"

#include <cstring>
#include <string>
#include <utility>

#include "operator/control/job_settings.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"

namespace adamant::local {

absl::Status CheckOneMachine(const v1::TrainingJob& job) {
  const v1::Data& data = job.spec().data();
  for (const auto& [set, source] :
       {std::pair("train", &data.train()), std::pair("validation", &data.validation())}) {
    if (source->idx().has_claim()) {
      return absl::InvalidArgumentError(
          std::string("spec.data.") + set +
          ".idx.claim: not available on one machine (allowed: paths of this machine, download)");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> ExamplesOf(const v1::DataSource& source) {
  if (source.has_digits()) {
    return static_cast<std::uint64_t>(source.digits().examples());
  }
  if (source.has_download()) {
    return 0;
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const dataset::IdxInfo info,
      dataset::InspectIdx({.images = source.idx().images(), .labels = source.idx().labels()}));
  return info.examples;
}

absl::StatusOr<controller::JobSettings> SettingsOf(const v1::TrainingJob& job) {
  controller::JobSettings settings = control::SettingsOf(job);
  settings.start_deadline.reset();  // nobody else waits for the room that processes have
  ADAMANT_ASSIGN_OR_RETURN(settings.training_examples, ExamplesOf(job.spec().data().train()));
  return settings;
}

}  // namespace adamant::local
