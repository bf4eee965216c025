#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/kube/api/orphans.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/pods/coscheduling_group.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

// The volumes of a job's parameter servers, how many servers may be evicted at once, and the group
// that its pods are placed in.
namespace adamant::kube {

using controller::Role;

namespace {

// Between two looks at the PodGroup: only pods without a node need it.
constexpr std::chrono::seconds kGroupLook{10};
constexpr std::chrono::seconds kUrgentGroupLook{2};

}  // namespace

absl::Status JobBody::CreateClaim(const Json& claim) {
  std::string unused;
  return claim.is_null() ? absl::OkStatus() : CreateOnce(kPersistentVolumeClaims, claim, unused);
}

// One that was deleted while no pod waited for it is there again under its name, and empty.
absl::Status JobBody::MakeServersClaim(controller::MemberId server, std::uint64_t volume) {
  const Json claim = ClaimObject(job_, *view_->job, server.slot, volume);
  const std::string name = KeyOf(claim).name;
  std::string uid;
  ADAMANT_RETURN_IF_ERROR(CreateOnce(kPersistentVolumeClaims, claim, uid));
  const auto [known, is_new] = claims_.try_emplace(name, uid);
  if (!is_new && !uid.empty() && known->second != uid) {
    known->second = uid;
    Record(true,
           "ClaimDeleted",
           controller::ToString(server) + " begins anew on an empty volume: its claim " + name +
               " was deleted, and is made again");
  }
  return absl::OkStatus();
}

absl::Status JobBody::DeleteClaim(std::uint32_t slot, std::uint64_t volume) {
  const std::string name = ClaimName(job_.key.name, slot, volume);
  const absl::Status deleted = DeleteIfOwn(client_, kPersistentVolumeClaims, name, job_);
  NoteWrite("delete claim " + name, deleted);
  return deleted;
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
  const auto there = std::ranges::find(seen, name, [](const auto& budget) { return budget->name; });
  const BudgetView* budget = there == seen.end() ? nullptr : there->get();
  if (!budgets_.IsToBeWritten(name, min_available, budget)) {
    return absl::OkStatus();
  }
  const absl::Status written = WriteBudget(role, min_available, budget);
  NoteWrite("create disruption budget " + name, written);
  if (written.ok()) {
    budgets_.OnWritten(name, min_available);
  }
  return written;
}

absl::Status JobBody::WriteBudget(Role role, int min_available, const BudgetView* there) {
  if (there == nullptr) {
    std::string unused;
    return CreateOnce(kPodDisruptionBudgets, BudgetObject(job_, role, min_available), unused);
  }
  const Json change = {{"metadata", {{"uid", there->uid}}},
                       {"spec", {{"minAvailable", min_available}}}};
  const absl::Status changed =
      client_.Patch(kPodDisruptionBudgets, {job_.key.ns, there->name}, PatchType::kMerge, change)
          .status();
  // Where it is gone the cache will say so.
  return absl::IsNotFound(changed) || absl::IsAborted(changed) ? absl::OkStatus() : changed;
}

// Nobody tells of its changes: not every cluster knows this kind.
absl::Status JobBody::MakePodGroup(const PodViews& pods) {
  const v1::JobSpec& spec = view_->job->spec();
  const std::string& name = spec.pods().scheduling().pod_group();
  if (name.empty() || finished_) {
    next_group_look_.reset();
    return absl::OkStatus();
  }
  const Clock::TimePoint now = context_.clock.Now();
  const std::string what = "keep PodGroup " + name;
  if (next_group_look_ && now < *next_group_look_) {
    failed_writes_.Keep(what);
    return absl::OkStatus();
  }
  const int processes = spec.distribution().workers() + spec.distribution().data_servers() +
                        spec.distribution().parameter_servers().count();
  const absl::Status kept = KeepPodGroup(client_, job_, name, processes, NoProcessRuns(pods));
  NoteWrite(what, kept);
  const bool urgent = !kept.ok() || pods.empty() ||
                      std::ranges::any_of(pods, [](const auto& pod) { return pod->node.empty(); });
  next_group_look_ = now + (urgent ? kUrgentGroupLook : kGroupLook);
  return kept;
}

// One that is overdue, as the API is away, is made when that is tried again.
std::optional<Clock::TimePoint> JobBody::NextGroupLook() const {
  const bool ahead = next_group_look_ && *next_group_look_ > context_.clock.Now();
  return ahead ? next_group_look_ : std::nullopt;
}

}  // namespace adamant::kube
