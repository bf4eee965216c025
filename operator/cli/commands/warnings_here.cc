#include "operator/cli/commands/warnings_here.h"

#include <utility>

#include "operator/cli/warnings/machine_warning.h"
#include "operator/cli/warnings/memory_need.h"
#include "operator/local/processes/control_group.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/thread_affinity.h"

namespace adamant::cli {

std::vector<std::string> WarningsHere(const v1::TrainingJob& job) {
  std::vector<std::string> warnings;
  if (job.spec().has_pods() || !local::CheckOneMachine(job).ok()) {
    return warnings;
  }
  if (std::string warning = MachineWarning(job, UsableCpus()); !warning.empty()) {
    warnings.push_back(std::move(warning));
  }
  if (const auto needs = MemoryNeeds(job); needs.ok()) {
    std::string warning = MemoryWarning(*needs, local::ControlGroup().FreeMemory());
    if (!warning.empty()) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

}  // namespace adamant::cli
