#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/kube/pods/objects/pod_image.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kubectl {

inline constexpr int kOutputPort = 8080;

struct OutputPod {
  std::string name;
  kube::PodImage image;
  std::string key;                 ///< that requests must know
  std::vector<std::string> files;  ///< that are served, where they are there
};

/// The pod that serves the output of a job: with the same rights as the job's pods, none; its claim
/// read-only. It belongs to the job, and vanishes with it; it ends when nobody has asked for a
/// while.
kube::Json OutputPodObject(const kube::Json& job, const OutputPod& pod);

}  // namespace adamant::kubectl
