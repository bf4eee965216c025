#include "operator/core/job/first_state.h"

#include <algorithm>
#include <string>

namespace adamant::controller {
namespace {

// As far as configurations name them.
std::size_t ServersOf(const JobState& state) {
  std::size_t servers = 0;
  for (const Configuration& bucket : state.buckets) {
    for (const ServerId& replica : bucket.replicas) {
      servers = std::max(servers, std::size_t{replica.slot} + 1);
    }
  }
  return servers;
}

// The number of the manifest that is not that of the job whose state it is; "" if there is none.
std::string OtherNumber(const JobSettings& settings, const JobState& state) {
  const std::size_t data_servers = state.part_owner.size();
  if (data_servers != settings.data_servers) {
    return "dataServers: " + std::to_string(settings.data_servers) +
           ", and the job was begun with " + std::to_string(data_servers);
  }
  const std::size_t buckets = state.buckets.size();
  if (buckets != 0 && buckets != settings.buckets) {
    return "parameterServers.buckets: " + std::to_string(settings.buckets) +
           ", and the job was begun with " + std::to_string(buckets);
  }
  const std::size_t servers = ServersOf(state);
  const bool more = state.slots.size() < data_servers + settings.parameter_servers;
  if (more || servers > settings.parameter_servers) {
    return "parameterServers.count: " + std::to_string(settings.parameter_servers) +
           ", and the job was begun with " +
           (more ? "fewer" : "at least " + std::to_string(servers));
  }
  return "";
}

}  // namespace

JobState NewState(const JobSettings& settings, std::uint64_t job_uid) {
  JobState state;
  state.job_uid = job_uid;
  if (settings.on_divergence.action == OnDivergence::Action::kRecover) {
    state.step = Step::kFirstWeights;
  }
  state.slots.resize(std::size_t{settings.data_servers} + settings.parameter_servers +
                     settings.workers);
  for (std::uint32_t part = 0; part < settings.data_servers; ++part) {
    state.part_owner.push_back(part);
  }
  return state;
}

absl::StatusOr<JobState> StoredState(const JobSettings& settings, std::string_view bytes) {
  absl::StatusOr<JobState> state = DecodeState(bytes);
  if (!state.ok()) {
    return state.status();
  }
  if (const std::string other = OtherNumber(settings, *state); !other.empty()) {
    return absl::FailedPreconditionError("spec.distribution." + other +
                                         ": it cannot change, put it back as it was");
  }
  if (state->histories.size() != state->buckets.size()) {
    return absl::DataLossError("the controller's state is not valid: it has " +
                               std::to_string(state->buckets.size()) + " buckets and " +
                               std::to_string(state->histories.size()) + " histories");
  }
  const std::size_t servers = std::size_t{settings.data_servers} + settings.parameter_servers;
  state->slots.resize(std::max(state->slots.size(), servers + settings.workers));
  return state;
}

}  // namespace adamant::controller
