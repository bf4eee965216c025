#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/kube/api/job_identity.h"

// How many of a job's pods may be evicted at once.
namespace adamant::kube {

/// "mnist-parameter-server"
std::string BudgetName(const std::string& job, controller::Role role);

/// The PodDisruptionBudget of a role. It counts pods by a number, not by a share or by how many may
/// be missing: for those Kubernetes asks the job's scale, which is that of its workers.
nlohmann::json BudgetObject(const JobIdentity& job, controller::Role role, int min_available);

/// Part of a budget that an informer keeps.
struct BudgetView {
  std::string job_name;
  std::string job_uid;
  std::string name;
  std::string uid;
  int min_available = 0;
};

/// Null for one that is not of a job.
std::shared_ptr<const BudgetView> ParseBudget(const nlohmann::json& object);

using BudgetViews = std::vector<std::shared_ptr<const BudgetView>>;

/// Choice of the budgets of a job that are to be written, so that each write is asked for once
/// though the cache shows it later.
/// Threads: one at a time.
class Budgets {
 public:
  /// Returns true if this budget, which is `seen` (null: not there), is to be made or changed now.
  bool IsToBeWritten(const std::string& name, int min_available, const BudgetView* seen);

  /// It was written.
  void OnWritten(const std::string& name, int min_available);

 private:
  struct Written {
    int min_available = 0;
    bool seen = false;  // by the cache, since
  };
  std::map<std::string, Written> written_;
};

}  // namespace adamant::kube
