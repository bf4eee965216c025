#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/certificates/pod_identities.h"

namespace adamant::kube {

/// Pods and jobs as an operator's caches show them, which a test says.
class SeenPods {
 public:
  /// A worker's pod, as the tokens of tests name it.
  static PodView Worker(std::uint64_t generation = 12) {
    PodView pod;
    pod.ns = "team-a";
    pod.job_name = "digits";
    pod.job_uid = "8f14e45f-ceea-467f-a0e6-3c2a1b9d7e01";
    pod.pod.process = {.id = {.role = controller::Role::kWorker, .slot = 3},
                       .generation = generation};
    pod.pod.name = "digits-worker-3-" + std::to_string(generation);
    pod.pod.uid = generation == 12 ? "aa-bb" : "uid-" + std::to_string(generation);
    return pod;
  }

  void See(PodView pod) {
    const ObjectKey key{pod.ns, pod.pod.name};
    pods_[key] = std::make_shared<const PodView>(std::move(pod));
  }
  void SeeJob(const std::string& uid) { job_uid_ = uid; }

  [[nodiscard]] PodIdentities::Sources Sources() const {
    return {.pod =
                [this](const ObjectKey& key) {
                  const auto found = pods_.find(key);
                  return found == pods_.end() ? nullptr : found->second;
                },
            .pods_of =
                [this](const std::string& job_uid) {
                  std::vector<PodIdentities::PodPointer> pods;
                  for (const auto& [key, pod] : pods_) {
                    if (pod->job_uid == job_uid) {
                      pods.push_back(pod);
                    }
                  }
                  return pods;
                },
            .uid_of =
                [this](const ObjectKey& job) {
                  return job == ObjectKey{"team-a", "digits"} ? job_uid_ : "";
                }};
  }

 private:
  std::map<ObjectKey, PodIdentities::PodPointer> pods_;
  std::string job_uid_ = Worker().job_uid;
};

}  // namespace adamant::kube
