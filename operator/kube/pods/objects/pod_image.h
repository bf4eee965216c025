#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace adamant::kube {

/// Image that a pod runs, and how nodes fetch it.
struct PodImage {
  std::string name;
  std::string pull_policy{};                ///< "Always", "IfNotPresent" or "Never"; "": not said
  std::vector<std::string> pull_secrets{};  ///< names of secrets in the pod's namespace
};

/// Adds the secrets of an image to a pod.
void AddPullSecrets(const PodImage& image, nlohmann::json& pod);

/// Adds its policy to the pod's containers that run this image and do not name another policy: one
/// that a user's template has put in its place is fetched as Kubernetes does by itself.
void AddPullPolicy(const PodImage& image, nlohmann::json& pod);

/// Annotations of what a job's export is told by which `kubectl adamant export` runs the same
/// image. A policy is not among them.
nlohmann::json ImageAnnotations(const PodImage& image);

/// The image of these annotations; without a name where there are none.
PodImage ImageIn(const nlohmann::json& object);

}  // namespace adamant::kube
