#include <nlohmann/json.hpp>

#include "operator/kube/client/json.h"
#include "operator/kube/job_body.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

// The volumes of a job's parameter servers, and how many servers may be evicted at once.
namespace adamant::kube {

using controller::Role;

absl::Status JobBody::CreateClaim(const Json& claim) {
  std::string unused;
  return claim.is_null() ? absl::OkStatus() : CreateOnce(kPersistentVolumeClaims, claim, unused);
}

absl::Status JobBody::DeleteClaim(std::uint32_t slot, std::uint64_t volume) {
  const absl::Status deleted = client_.Delete(
      kPersistentVolumeClaims, {job_.key.ns, ClaimName(job_.key.name, slot, volume)});
  return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
}

// Those that servers have left with their nodes, once nobody needs what is on them. After a restart
// they are asked for again, as nothing is remembered of it.
absl::Status JobBody::DeleteLeftClaims() {
  if (!controller_->HasAllCopies()) {
    return absl::OkStatus();
  }
  const int servers = view_->job->spec().distribution().parameter_servers().count();
  for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(servers); ++slot) {
    std::uint64_t& left = left_claims_[slot];
    while (left + 1 < controller_->VolumeOf({Role::kParameterServer, slot})) {
      ADAMANT_RETURN_IF_ERROR(DeleteClaim(slot, left + 1));
      ++left;
    }
  }
  return absl::OkStatus();
}

absl::Status JobBody::DeleteAllClaims() {
  absl::Status status;
  const int servers = view_->job->spec().distribution().parameter_servers().count();
  for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(servers); ++slot) {
    const std::uint64_t volumes = controller_->VolumeOf({Role::kParameterServer, slot});
    for (std::uint64_t volume = 1; volume <= volumes; ++volume) {
      status.Update(DeleteClaim(slot, volume));
    }
  }
  return status;
}

// One server at a time may be evicted, and none while another eviction could take the last copy of
// a bucket. Where there is only one it may always: it stores what it has before it ends.
absl::Status JobBody::MakeBudgets(const BudgetViews& seen) {
  if (finished_) {
    return absl::OkStatus();
  }
  const v1::Distribution& distribution = view_->job->spec().distribution();
  const int servers = distribution.parameter_servers().count();
  const int spared = controller_->HasAllCopies() ? 1 : 0;
  absl::Status status;
  if (servers > 1) {
    status.Update(MakeBudget(Role::kParameterServer, servers - spared, seen));
  }
  if (distribution.data_servers() > 1) {
    status.Update(MakeBudget(Role::kDataServer, distribution.data_servers() - 1, seen));
  }
  return status;
}

absl::Status JobBody::MakeBudget(Role role, int min_available, const BudgetViews& seen) {
  const std::string name = BudgetName(job_.key.name, role);
  const BudgetView* there = nullptr;
  for (const auto& budget : seen) {
    if (budget->name == name) {
      there = budget.get();
    }
  }
  if (!budgets_.IsToBeWritten(name, min_available, there)) {
    return absl::OkStatus();
  }
  if (there == nullptr) {
    std::string unused;
    ADAMANT_RETURN_IF_ERROR(
        CreateOnce(kPodDisruptionBudgets, BudgetObject(job_, role, min_available), unused));
  } else {
    const Json change = {{"metadata", {{"uid", there->uid}}},
                         {"spec", {{"minAvailable", min_available}}}};
    const auto changed =
        client_.Patch(kPodDisruptionBudgets, {job_.key.ns, name}, PatchType::kMerge, change);
    if (!changed.ok() && !absl::IsNotFound(changed.status()) &&
        !absl::IsAborted(changed.status())) {  // it is gone: the cache will say so
      return changed.status();
    }
  }
  budgets_.OnWritten(name, min_available);
  return absl::OkStatus();
}

}  // namespace adamant::kube
