#include "operator/kube/pods/node_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/time.h"

namespace adamant::kube {
namespace {

constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";
constexpr char kUnschedulable[] = "node.kubernetes.io/unschedulable";
constexpr char kHostName[] = "kubernetes.io/hostname";
constexpr char kZone[] = "topology.kubernetes.io/zone";

// The element of a list at `path` whose `field` has this value; null: there is none.
const Json* FindElement(const Json& object,
                        JsonPath path,
                        std::string_view field,
                        std::string_view value) {
  const Json* list = Find(object, path);
  if (list == nullptr || !list->is_array()) {
    return nullptr;
  }
  const auto found = std::ranges::find_if(
      *list, [&](const Json& element) { return StringAt(element, {field}) == value; });
  return found == list->end() ? nullptr : &*found;
}

std::vector<Taint> TaintsOf(const Json& object) {
  std::vector<Taint> taints;
  const Json* cordoned = Find(object, {"spec", "unschedulable"});
  if (cordoned != nullptr && cordoned->is_boolean() && cordoned->get<bool>()) {
    taints.push_back({.key = kUnschedulable, .value = "", .effect = "NoSchedule"});
  }
  const Json* list = Find(object, {"spec", "taints"});
  for (const Json& taint : list != nullptr && list->is_array() ? *list : Json::array()) {
    std::string effect = StringAt(taint, {"effect"});
    if (effect == "NoSchedule" || effect == "NoExecute") {
      taints.push_back({.key = StringAt(taint, {"key"}),
                        .value = StringAt(taint, {"value"}),
                        .effect = std::move(effect)});
    }
  }
  return taints;
}

// For good: a pod that tolerates a taint for some seconds does not stay. Source: Kubernetes' API,
// core/v1 Toleration.
bool Tolerates(const Json& toleration, const Taint& taint) {
  const std::string key = StringAt(toleration, {"key"});
  const std::string effect = StringAt(toleration, {"effect"});
  const bool exists = StringAt(toleration, {"operator"}, "Equal") == "Exists";
  return Find(toleration, {"tolerationSeconds"}) == nullptr &&
         (effect.empty() || effect == taint.effect) &&
         (key == taint.key || (key.empty() && exists)) &&
         (exists || StringAt(toleration, {"value"}) == taint.value);
}

}  // namespace

std::shared_ptr<const NodeView> ParseNode(const Json& object) {
  auto view = std::make_shared<NodeView>();
  view->name = KeyOf(object).name;
  if (const Json* ready = FindElement(object, {"status", "conditions"}, "type", "Ready")) {
    view->ready = StringAt(*ready, {"status"}) == "True";
    if (const auto since = ParseTime(StringAt(*ready, {"lastTransitionTime"})); since.ok()) {
      view->since = *since;
    }
  }
  view->zone = StringAt(object, {"metadata", "labels", kZone});
  view->host_name = StringAt(object, {"metadata", "labels", kHostName}, view->name);
  view->taints = TaintsOf(object);
  view->out_of_service = FindElement(object, {"spec", "taints"}, "key", kOutOfService) != nullptr;
  return view;
}

bool TakesPods(const NodeView& node, const Json& tolerations) {
  return std::ranges::all_of(node.taints, [&](const Taint& taint) {
    return tolerations.is_array() && std::ranges::any_of(tolerations, [&](const Json& toleration) {
             return Tolerates(toleration, taint);
           });
  });
}

void NodeAbsences::Update(const NodeViews& nodes, const Clock& clock) {
  const Clock::TimePoint now = clock.Now();
  std::map<std::string, Clock::TimePoint> since;
  for (const auto& [name, view] : nodes) {
    if (view != nullptr && view->ready) {
      continue;
    }
    const auto known = since_.find(name);
    Clock::TimePoint& from = since[name];
    from = known == since_.end() ? now : known->second;
    if (view != nullptr && view->since) {
      from = std::min(
          from, now - std::chrono::duration_cast<Clock::Duration>(clock.WallNow() - *view->since));
    }
  }
  since_ = std::move(since);
}

std::optional<Clock::Duration> NodeAbsences::Of(const std::string& node,
                                                Clock::TimePoint now) const {
  const auto found = since_.find(node);
  return found == since_.end() ? std::nullopt : std::optional(now - found->second);
}

}  // namespace adamant::kube
