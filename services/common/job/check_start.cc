#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/semantics.h"

namespace adamant::job {
namespace {

constexpr char kOneMachineOnly[] =
    "not available in a cluster (allowed: absent; adamant train has it, on one machine)";

}  // namespace

void CheckStart(const v1::JobSpec& spec,
                DataPlace place,
                const Locations& given,
                Problems& problems) {
  const auto refuse = [&](const char* path) {
    problems.Add(Locate(given, path), path, kOneMachineOnly);
  };
  if (place != DataPlace::kElsewhere) {
    return;
  }
  if (spec.has_start_from()) {
    refuse("spec.startFrom");
  }
  if (spec.output().has_checkpoints()) {
    refuse("spec.output.checkpoints");
  }
}

}  // namespace adamant::job
