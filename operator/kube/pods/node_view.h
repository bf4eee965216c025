#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "services/common/base/clock.h"

namespace adamant::kube {

/// Mark on a node that keeps off pods that do not tolerate it. A cordon is one, too.
struct Taint {
  std::string key;
  std::string value;
  std::string effect;  ///< "NoSchedule" or "NoExecute"

  bool operator==(const Taint&) const = default;
};

/// Part of a node that an informer keeps: what decides whether its pods count as lost, and whether
/// it gets others.
struct NodeView {
  std::string name;
  bool ready = false;
  bool out_of_service = false;  ///< marked so: nothing runs on it any more
  std::vector<Taint> taints{};
  std::string host_name{};  ///< by which volumes name it; mostly its name
  std::string zone{};       ///< empty: not known
  /// Since when it is, or is not, ready, by the clock of whom has found that out.
  std::optional<std::chrono::system_clock::time_point> since;

  bool operator==(const NodeView&) const = default;
};

std::shared_ptr<const NodeView> ParseNode(const nlohmann::json& object);

/// Returns true if a pod with these spec.tolerations (or null) may run on this node and stay.
bool TakesPods(const NodeView& node, const nlohmann::json& tolerations);

/// The node of a name. Null: there is none.
using NodeLookup = std::function<std::shared_ptr<const NodeView>(const std::string& name)>;

/// By name.
using NodeViews = std::map<std::string, std::shared_ptr<const NodeView>>;

/// Times for which nodes have been away: not ready, or not there at all. Counted by our clock from
/// when it was noticed first, and by Kubernetes' own word where that is older: another operator may
/// have waited before.
/// Threads: one at a time.
class NodeAbsences {
 public:
  /// Takes in how nodes are now; those that are not among them are forgotten.
  void Update(const NodeViews& nodes, const Clock& clock);

  /// Absent: the node is there, or was not among the last Update's.
  [[nodiscard]] std::optional<Clock::Duration> Of(const std::string& node,
                                                  Clock::TimePoint now) const;

 private:
  std::map<std::string, Clock::TimePoint> since_;  // by node
};

}  // namespace adamant::kube
