#include "operator/core/state/state.h"

namespace adamant::controller {

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kPending:
      return "Pending";
    case Phase::kStarting:
      return "Starting";
    case Phase::kRunning:
      return "Running";
    case Phase::kEvaluating:
      return "Evaluating";
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return "Failed";
    case Phase::kSuspended:
      return "Suspended";
  }
  return "Unknown";
}

bool IsFinal(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kSuspended;
}

std::uint32_t SlotCount(const JobSettings& settings, Role role) {
  switch (role) {
    case Role::kDataServer:
      return settings.data_servers;
    case Role::kParameterServer:
      return settings.parameter_servers;
    case Role::kWorker:
      return settings.workers;
  }
  return 0;
}

std::uint64_t TrainingExamples(const JobSettings& settings, const JobState& state) {
  return settings.training_examples > 0 ? settings.training_examples : state.training_examples;
}

std::size_t SlotIndex(const JobSettings& settings, SlotId id) {
  switch (id.role) {
    case Role::kDataServer:
      return id.slot;
    case Role::kParameterServer:
      return settings.data_servers + id.slot;
    case Role::kWorker:
      break;
  }
  return std::size_t{settings.data_servers} + settings.parameter_servers + id.slot;
}

SlotId SlotAt(const JobSettings& settings, std::size_t index) {
  auto slot = static_cast<std::uint32_t>(index);
  if (slot < settings.data_servers) {
    return {Role::kDataServer, slot};
  }
  slot -= settings.data_servers;
  if (slot < settings.parameter_servers) {
    return {Role::kParameterServer, slot};
  }
  return {Role::kWorker, slot - settings.parameter_servers};
}

}  // namespace adamant::controller
