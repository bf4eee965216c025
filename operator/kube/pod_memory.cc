#include "operator/kube/pod_memory.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "operator/kube/pod_object.h"

namespace adamant::kube {

using controller::ObservedPod;
using controller::StartProcess;

void PodMemory::OnMade(const StartProcess& process, const std::string& uid) {
  pods_[process] = {.uid = uid, .seen = false};
}

void PodMemory::OnSeen(const StartProcess& process, const std::string& uid) {
  pods_[process] = {.uid = uid, .seen = true};
}

void PodMemory::OnGone(const std::string& uid) {
  for (auto& [process, pod] : pods_) {
    pod.seen = pod.seen || pod.uid == uid;
  }
}

void PodMemory::ForgetBefore(std::span<const StartProcess> wanted) {
  for (const StartProcess& process : wanted) {
    pods_.erase(pods_.lower_bound({.id = process.id, .generation = 0}), pods_.lower_bound(process));
  }
}

void PodMemory::Complete(const std::string& job, std::vector<ObservedPod>& observed) const {
  std::set<StartProcess> there;
  std::ranges::transform(observed, std::inserter(there, there.end()), &ObservedPod::process);
  for (const auto& [process, pod] : pods_) {
    if (!there.contains(process)) {
      observed.push_back(
          {.process = process,
           .name = PodName(job, process),
           .uid = pod.uid,
           .state = pod.seen ? ObservedPod::State::kGone : ObservedPod::State::kPending});
    }
  }
}

}  // namespace adamant::kube
