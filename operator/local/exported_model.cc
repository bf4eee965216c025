#include "operator/local/exported_model.h"

#include <cstdio>
#include <string>

#include "operator/control/job_settings.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::local {

ExportedModel ModelToExport(const controller::JobController& controller,
                            const v1::TrainingJob& job,
                            std::uint64_t snapshot) {
  const controller::JobState& state = controller.state();
  ExportedModel model;
  model.source.job_uid = state.job_uid;
  model.source.snapshot = snapshot;
  const std::uint32_t servers = control::SettingsOf(job).parameter_servers;
  for (std::uint32_t slot = 0; slot < servers; ++slot) {
    model.source.servers.push_back(
        controller.AddressOf({controller::Role::kParameterServer, slot}));
  }
  for (const controller::Configuration& bucket : state.buckets) {
    model.source.holders.push_back(bucket.primary.slot);
  }
  char top1[32];
  std::snprintf(top1, sizeof(top1), "%.6f", state.accuracy);
  model.metadata = {
      {"job", job.metadata().name()}, {"epoch", std::to_string(state.row.epoch)}, {"top1", top1}};
  return model;
}

}  // namespace adamant::local
