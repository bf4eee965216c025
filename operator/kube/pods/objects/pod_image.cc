#include "operator/kube/pods/objects/pod_image.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr char kImageAnnotation[] = "adamant.dev/image";
constexpr char kPullSecretsAnnotation[] = "adamant.dev/image-pull-secrets";  // by commas

}  // namespace

void AddPullSecrets(const PodImage& image, Json& pod) {
  for (const std::string& name : image.pull_secrets) {
    pod["spec"]["imagePullSecrets"].push_back({{"name", name}});
  }
}

void AddPullPolicy(const PodImage& image, Json& pod) {
  const Json* containers = Find(pod, {"spec", "containers"});
  if (image.pull_policy.empty() || containers == nullptr || !containers->is_array()) {
    return;
  }
  for (Json& container : pod["spec"]["containers"]) {
    if (StringAt(container, {"image"}) == image.name && !container.contains("imagePullPolicy")) {
      container["imagePullPolicy"] = image.pull_policy;
    }
  }
}

Json ImageAnnotations(const PodImage& image) {
  std::string secrets;
  for (const std::string& name : image.pull_secrets) {
    secrets += (secrets.empty() ? "" : ",") + name;
  }
  return {{kImageAnnotation, image.name}, {kPullSecretsAnnotation, secrets}};
}

PodImage ImageIn(const Json& object) {
  PodImage image{.name = StringAt(object, {"metadata", "annotations", kImageAnnotation})};
  std::istringstream rest(StringAt(object, {"metadata", "annotations", kPullSecretsAnnotation}));
  for (std::string name; std::getline(rest, name, ',');) {
    image.pull_secrets.push_back(name);
  }
  return image;
}

}  // namespace adamant::kube
