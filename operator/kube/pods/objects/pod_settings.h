#pragma once

#include <optional>
#include <string>

#include "operator/kube/network/job_policies.h"
#include "operator/kube/pods/objects/pod_image.h"
#include "operator/kube/volumes/pod_security.h"

namespace adamant::kube {

/// Settings that the pods of all jobs have in common.
struct PodSettings {
  PodImage image;
  std::string control_service;                  ///< host:port where the operators are, without TLS
  std::optional<PodSecurity> security{};        ///< none: their processes do without TLS
  std::optional<NetworkSettings> network = {};  ///< none: jobs get no network policies
};

}  // namespace adamant::kube
