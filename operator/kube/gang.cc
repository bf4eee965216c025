#include "operator/kube/gang.h"

#include <nlohmann/json.hpp>

#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {

void AddGang(const std::string& group, const v1::JobSpec& spec, nlohmann::json& pod) {
  const v1::Scheduling& scheduling = spec.pods().scheduling();
  nlohmann::json& labels = pod["metadata"]["labels"];
  if (scheduling.has_kueue_queue()) {
    const v1::Distribution& distribution = spec.distribution();
    const int pods = distribution.workers() + distribution.data_servers() +
                     distribution.parameter_servers().count();
    labels["kueue.x-k8s.io/queue-name"] = scheduling.kueue_queue();
    labels["kueue.x-k8s.io/pod-group-name"] = group;
    pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = std::to_string(pods);
  } else if (scheduling.has_pod_group()) {
    labels["scheduling.x-k8s.io/pod-group"] = scheduling.pod_group();
  }
}

}  // namespace adamant::kube
