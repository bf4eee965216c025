#include "operator/kube/volumes/volume_host.h"

#include <nlohmann/json.hpp>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {

std::string HostOfVolume(const Json& volume) {
  const Json* terms = Find(volume, {"spec", "nodeAffinity", "required", "nodeSelectorTerms"});
  if (terms == nullptr || !terms->is_array() || terms->size() != 1) {
    return "";  // one of several terms is enough
  }
  const Json* expressions = Find(terms->front(), {"matchExpressions"});
  if (expressions == nullptr || !expressions->is_array()) {
    return "";
  }
  for (const Json& expression : *expressions) {
    const Json* values = Find(expression, {"values"});
    if (StringAt(expression, {"key"}) == "kubernetes.io/hostname" &&
        StringAt(expression, {"operator"}) == "In" && values != nullptr && values->is_array() &&
        values->size() == 1 && values->front().is_string()) {
      return values->front().get<std::string>();
    }
  }
  return "";
}

}  // namespace adamant::kube
