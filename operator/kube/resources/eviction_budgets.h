#pragma once

#include "absl/status/status.h"
#include "operator/core/state/messages.h"
#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/resources/job_writer.h"

namespace adamant::v1 {
class Distribution;
}  // namespace adamant::v1

namespace adamant::kube {

/// Limits on how many of a job's servers may be evicted at once, as PodDisruptionBudgets.
/// Threads: one.
class EvictionBudgets {
 public:
  /// `writer` must outlive this.
  explicit EvictionBudgets(JobWriter& writer) : writer_(writer) {}

  /// Makes what is missing or not as it should be. One server at a time may be evicted, and none
  /// while another eviction could take the last copy of a bucket, unless the job
  /// `has_all_copies`. Where there is only one it may always: it stores what it has before it ends.
  absl::Status Make(const v1::Distribution& distribution,
                    bool has_all_copies,
                    const BudgetViews& seen);

 private:
  absl::Status MakeOf(controller::Role role, int min_available, const BudgetViews& seen);
  absl::Status Write(controller::Role role, int min_available, const BudgetView* there);

  JobWriter& writer_;
  Budgets budgets_;
};

}  // namespace adamant::kube
