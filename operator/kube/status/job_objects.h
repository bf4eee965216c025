#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/pods/node_view.h"
#include "operator/kube/pods/pod_object.h"

namespace adamant::kube {

using PodViews = std::vector<std::shared_ptr<const PodView>>;

/// Whether the containers of all have ended.
bool AllEnded(const PodViews& pods);

/// Whether no process runs, nor will by itself. Of a job that was suspended some pods may be left.
bool NoProcessRuns(const PodViews& pods);

/// What belongs to a job, as informers saw it last.
struct JobObjects {
  PodViews pods;
  NodeLookup node_of;  ///< empty: all nodes are there
  BudgetViews budgets;
  std::function<std::vector<std::shared_ptr<const NodeView>>()> all_nodes;  ///< empty: not known
};

}  // namespace adamant::kube
