#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/pods/node_view.h"
#include "operator/kube/pods/pod_view.h"

namespace adamant::kube {

using PodViews = std::vector<std::shared_ptr<const PodView>>;

/// Returns true if the containers of all have ended.
bool AllEnded(const PodViews& pods);

/// Returns true if no process runs, nor will by itself. A suspended job may have some pods left.
bool NoProcessRuns(const PodViews& pods);

/// Objects that belong to a job, as informers saw them last. Threads: one; what it points to is
/// never changed.
struct JobObjects {
  PodViews pods;
  NodeLookup node_of{};  ///< empty: all nodes are there
  BudgetViews budgets;
  std::function<std::vector<std::shared_ptr<const NodeView>>()> all_nodes{};  ///< empty: not known
  /// False: the operator has no right of the cluster, and asks for nothing that is in no namespace.
  bool sees_cluster = true;
};

}  // namespace adamant::kube
