#include "operator/kube/resources/eviction_budgets.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {

using controller::Role;

absl::Status EvictionBudgets::Make(const v1::Distribution& distribution,
                                   bool has_all_copies,
                                   const BudgetViews& seen) {
  const int servers = distribution.parameter_servers().count();
  const int spared = has_all_copies ? 1 : 0;
  absl::Status status;
  if (servers > 1) {
    status.Update(MakeOf(Role::kParameterServer, servers - spared, seen));
  }
  if (distribution.data_servers() > 1) {
    status.Update(MakeOf(Role::kDataServer, distribution.data_servers() - 1, seen));
  }
  return status;
}

absl::Status EvictionBudgets::MakeOf(Role role, int min_available, const BudgetViews& seen) {
  const std::string name = BudgetName(writer_.job().key.name, role);
  const auto there = std::ranges::find(seen, name, [](const auto& budget) { return budget->name; });
  const BudgetView* const budget = there == seen.end() ? nullptr : there->get();
  if (!budgets_.IsToBeWritten(name, min_available, budget)) {
    return absl::OkStatus();
  }
  const absl::Status written = Write(role, min_available, budget);
  writer_.Note("create disruption budget " + name, written);
  if (written.ok()) {
    budgets_.OnWritten(name, min_available);
  }
  return written;
}

absl::Status EvictionBudgets::Write(Role role, int min_available, const BudgetView* there) {
  const JobIdentity& job = writer_.job();
  if (there == nullptr) {
    return writer_.CreateOnce(kPodDisruptionBudgets, BudgetObject(job, role, min_available))
        .status();
  }
  const Json change = {{"metadata", {{"uid", there->uid}}},
                       {"spec", {{"minAvailable", min_available}}}};
  const absl::Status changed =
      writer_.client()
          .Patch(kPodDisruptionBudgets, {job.key.ns, there->name}, PatchType::kMerge, change)
          .status();
  // Where it is gone the cache will say so.
  return absl::IsNotFound(changed) || absl::IsAborted(changed) ? absl::OkStatus() : changed;
}

}  // namespace adamant::kube
