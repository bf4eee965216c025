#include "operator/kube/pods/objects/strategic_merge.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

// The merge keys of PodSpec and what is in it; source: the API's x-kubernetes-patch-merge-key.
std::string_view MergeKey(std::string_view list) {
  static const std::map<std::string_view, std::string_view> kKeys = {
      {"containers", "name"},
      {"initContainers", "name"},
      {"ephemeralContainers", "name"},
      {"volumes", "name"},
      {"env", "name"},
      {"volumeMounts", "mountPath"},
      {"volumeDevices", "devicePath"},
      {"ports", "containerPort"},
      {"imagePullSecrets", "name"},
      {"hostAliases", "ip"},
      {"topologySpreadConstraints", "topologyKey"},
      {"resourceClaims", "name"},
      {"schedulingGates", "name"}};
  const auto found = kKeys.find(list);
  return found == kKeys.end() ? "" : found->second;
}

bool IsDeletion(const Json& element) { return StringAt(element, {"$patch"}) == "delete"; }

void MergeLists(Json& target, const Json& patch, const std::string& key) {
  for (const Json& element : patch) {
    const auto same = [&](const Json& other) {
      return element.is_object() && other.is_object() && element.contains(key) &&
             other.contains(key) && element.at(key) == other.at(key);
    };
    const auto found = std::find_if(target.begin(), target.end(), same);
    if (IsDeletion(element)) {
      if (found != target.end()) {
        target.erase(found);
      }
    } else if (found != target.end()) {
      StrategicMerge(*found, element);
    } else {
      StrategicMerge(target.emplace_back(), element);
    }
  }
}

}  // namespace

void StrategicMerge(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) {
    target = Json::object();
  }
  for (const auto& [name, value] : patch.items()) {
    const std::string key(MergeKey(name));
    if (value.is_null()) {
      target.erase(name);
    } else if (value.is_array() && !key.empty()) {
      Json& list = target[name];
      if (!list.is_array()) {
        list = Json::array();
      }
      MergeLists(list, value, key);
    } else if (value.is_object()) {
      StrategicMerge(target[name], value);
    } else {
      target[name] = value;
    }
  }
}

}  // namespace adamant::kube
