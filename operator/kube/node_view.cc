#include "operator/kube/node_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube/client/json.h"
#include "operator/kube/client/resource.h"
#include "operator/kube/client/time.h"

namespace adamant::kube {
namespace {

constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";
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

// As far as can be said of pods that tolerate nothing.
bool TakesPods(const Json& object) {
  const Json* cordoned = Find(object, {"spec", "unschedulable"});
  return !(cordoned != nullptr && cordoned->is_boolean() && cordoned->get<bool>()) &&
         FindElement(object, {"spec", "taints"}, "effect", "NoSchedule") == nullptr &&
         FindElement(object, {"spec", "taints"}, "effect", "NoExecute") == nullptr;
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
  view->takes_pods = TakesPods(object);
  view->out_of_service = FindElement(object, {"spec", "taints"}, "key", kOutOfService) != nullptr;
  return view;
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
