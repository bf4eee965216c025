#include "operator/kube/status/job_objects.h"

#include <algorithm>

namespace adamant::kube {

bool AllEnded(const PodViews& pods) {
  return std::ranges::all_of(
      pods, [](const auto& pod) { return pod->pod.state == ObservedPod::State::kEnded; });
}

bool NoProcessRuns(const PodViews& pods) {
  return std::ranges::all_of(pods, [](const auto& pod) {
    return !pod->IsProcess() || pod->pod.state == ObservedPod::State::kEnded;
  });
}

}  // namespace adamant::kube
