#include "operator/kube/pods/disruption_budget.h"

#include <nlohmann/json.hpp>

#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"

namespace adamant::kube {

std::string BudgetName(const std::string& job, controller::Role role) {
  return job + "-" + std::string(controller::RoleName(role));
}

Json BudgetObject(const JobIdentity& job, controller::Role role, int min_available) {
  return {
      {"metadata", MetadataOf(job, BudgetName(job.key.name, role))},
      {"spec",
       {{"minAvailable", min_available},
        {"unhealthyPodEvictionPolicy", "AlwaysAllow"},  // what does not run is not missed
        {"selector",
         {{"matchLabels", {{kJobUidLabel, job.uid}, {kRoleLabel, controller::RoleName(role)}}}}}}}};
}

std::shared_ptr<const BudgetView> ParseBudget(const Json& object) {
  auto view = std::make_shared<BudgetView>();
  view->job_name = StringAt(object, {"metadata", "labels", kJobLabel});
  view->job_uid = StringAt(object, {"metadata", "labels", kJobUidLabel});
  if (view->job_name.empty() || view->job_uid.empty()) {
    return nullptr;
  }
  view->name = KeyOf(object).name;
  view->uid = UidOf(object);
  view->min_available = static_cast<int>(IntAt(object, {"spec", "minAvailable"}, -1));
  return view;
}

bool Budgets::IsToBeWritten(const std::string& name, int min_available, const BudgetView* seen) {
  if (seen != nullptr && seen->min_available == min_available) {
    written_[name] = {.min_available = min_available, .seen = true};
    return false;
  }
  const auto last = written_.find(name);
  return last == written_.end() || last->second.seen || last->second.min_available != min_available;
}

void Budgets::OnWritten(const std::string& name, int min_available) {
  written_[name] = {.min_available = min_available, .seen = false};
}

}  // namespace adamant::kube
