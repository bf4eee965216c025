#include "operator/kube/resources/job_resources.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/durations.h"

namespace adamant::kube {

using controller::Phase;
using controller::Role;
using controller::StartProcess;

JobResources::JobResources(JobWriter& writer, const PodSettings& settings, Hooks hooks)
    : writer_(writer),
      settings_(settings),
      hooks_(std::move(hooks)),
      nodes_(writer.clock()),
      claims_(writer),
      pods_(writer, claims_, settings),
      waiting_(writer),
      moves_(writer.clock()),
      budgets_(writer),
      group_(writer),
      export_(writer, settings),
      output_(writer, settings) {}

void JobResources::Take(std::shared_ptr<const JobView> view, const JobObjects& seen) {
  view_ = std::move(view);
  nodes_.Update(seen);
}

void JobResources::Begin(std::shared_ptr<const JobView> view,
                         const controller::JobController& controller,
                         const PodViews& survivors) {
  view_ = std::move(view);
  controller_ = &controller;
  for (const auto& pod : survivors) {
    pods_.OnFound(pod->pod.process, pod->pod.uid);
  }
  finished_ = false;
  pods_.Begin();  // a suspended job can be changed, and its claims deleted
  output_checked_ = false;
  policies_made_ = false;
  export_.Reset();
  output_.Begin(WrittenOutputText(*view_->status));
  zones_.clear();
}

absl::Status JobResources::Make(const JobObjects& seen) {
  const PodViews& pods = seen.pods;
  const auto volume_of = [this](controller::SlotId id) {
    return controller_->processes().VolumeOf(id);
  };
  const v1::JobSpec& spec = view_->job->spec();
  absl::Status status;
  waiting_.Update(
      seen, [this] { return ServersTolerations(); }, volume_of);
  if (finished_) {
    group_.Stop();
  } else {
    status.Update(group_.Keep(spec, pods, NoProcessRuns(pods)));
  }
  status.Update(MakePods(seen));
  status.Update(MoveServer(seen));
  if (!finished_) {
    status.Update(budgets_.Make(spec.distribution(), controller_->HasAllCopies(), seen.budgets));
  }
  status.Update(MakeExport(pods));
  return status;
}

// A pod and what its node has to do with it. Kubernetes hears of a node through its API server:
// when that was away, so seem all nodes. Whoever is heard by us runs.
ObservedPod JobResources::ObserveOne(const PodView& view) const {
  ObservedPod pod = view.pod;
  const auto away = nodes_.AwayFor(view.node);
  if (away && !controller_->Hears(pod.process)) {
    pod.node_away = away;
  }
  if (!controller_->NeedsVolumeOf(pod.process.id.slot)) {
    pod.shut_out = waiting_.ShutOutFor(pod.uid);
  }
  pod.deleted_claim = waiting_.DeletedClaimOf(pod.uid);
  pod.moves = moves_.Moves(pod.uid);
  pod.node_out_of_service = nodes_.IsOutOfService(view.node);
  return pod;
}

std::vector<ObservedPod> JobResources::Observe(const PodViews& pods) {
  std::vector<ObservedPod> observed;
  for (const auto& view : pods) {
    if (view->IsProcess()) {
      observed.push_back(ObserveOne(*view));
    }
  }
  return pods_.Complete(std::move(observed), controller_->processes().AwaitedEnds());
}

std::optional<ObservedPod> JobResources::ObserveExport(const PodViews& pods,
                                                       OutputWork work) const {
  const auto found =
      std::ranges::find(pods, std::optional(work), [](const auto& pod) { return pod->output; });
  return found == pods.end() ? std::nullopt : std::optional(ObserveOne(**found));
}

NodeTimeouts JobResources::Timeouts() const {
  const v1::Detection& detection = view_->job->spec().detection();
  return {.unreachable = job::ToMilliseconds(detection.node_unreachable()),
          .force_delete = job::ToMilliseconds(detection.force_delete()),
          .cordoned = job::ToMilliseconds(detection.node_cordoned())};
}

bool JobResources::LeavesPods() const {
  const Phase phase = controller_->state().phase;
  return (phase == Phase::kSucceeded || phase == Phase::kFailed) && kube::LeavesPods(*view_->job);
}

// A scheduler, or who holds a pod's scheduling gates, may take as long as it wants. Why pods do not
// start is told when the job does not, in time.
void JobResources::HandleWaiting(const PodViews& pods) {
  controller::ProcessesWait waiting;
  for (const auto& view : pods) {
    if (!view->IsProcess() || view->pod.state != ObservedPod::State::kPending) {
      continue;
    }
    if (view->node.empty()) {
      waiting.processes.push_back(view->pod.process);
    }
    if (!view->waits.empty()) {
      waiting.why[view->pod.process.id] = view->waits;
    }
  }
  for (const StartProcess& process : controller_->Wanted()) {
    const absl::Status refusal = pods_.RefusalOf(process);
    if (!refusal.ok()) {
      waiting.why[process.id] = WordsOf(refusal);
    }
  }
  if (!waiting.processes.empty() || !waiting.why.empty()) {
    hooks_.handle(waiting);
  }
}

// Members name their node, and Kubernetes its zone.
void JobResources::HandleZones() {
  std::map<std::string, std::string> zones = nodes_.Zones();
  if (zones != zones_) {
    zones_ = std::move(zones);
    hooks_.handle(controller::ZonesKnown{zones_});
  }
}

ServerClaims::Volumes JobResources::VolumesInUse() const {
  ServerClaims::Volumes volumes;
  const int servers = view_->job->spec().distribution().parameter_servers().count();
  for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(servers); ++slot) {
    volumes.push_back(controller_->processes().VolumeOf({Role::kParameterServer, slot}));
  }
  return volumes;
}

absl::Status JobResources::MakePods(const JobObjects& seen) {
  const PodViews& pods = seen.pods;
  HandleWaiting(pods);
  HandleZones();
  // What has happened may change what is wanted, but only what is stored is acted on.
  const PodPlan past = Reconcile(controller_->Wanted(), Observe(pods), Timeouts());
  ADAMANT_ASSIGN_OR_RETURN(const bool is_stored, hooks_.handle_exits(past.exited));
  if (!is_stored) {
    return absl::OkStatus();
  }
  const std::vector<StartProcess> wanted = controller_->Wanted();
  pods_.ForgetBefore(wanted);
  for (const StartProcess& process : wanted) {
    nodes_.ForgetBefore(process);
  }
  PodPlan plan = Reconcile(wanted, Observe(pods), Timeouts());
  next_loss_.reset();
  if (plan.again_in) {
    next_loss_ = writer_.clock().Now() + *plan.again_in;
  }
  absl::Status status;
  if (!plan.create.empty() && NoProcessRuns(pods)) {
    const absl::StatusOr<bool> may_begin = CheckBeforeFirstPod(seen);
    if (!may_begin.ok() || !*may_begin || controller::IsFinal(controller_->state().phase)) {
      return may_begin.status();
    }
    ADAMANT_RETURN_IF_ERROR(MakePolicies());
  }
  const PodGroup group = GroupOf(GroupName(writer_.job().uid, controller_->state().starts), pods);
  status.Update(
      pods_.Create(*view_->job, std::move(plan.create), group, [this](controller::SlotId id) {
        return controller_->processes().VolumeOf(id);
      }));
  if (!LeavesPods()) {
    status.Update(RemovePods(plan.remove, pods));
  }
  if (finished_) {
    status.Update(CleanUp(pods));
  } else if (controller_->HasAllCopies()) {  // nobody needs what servers have left behind
    status.Update(claims_.DeleteLeft(VolumesInUse()));
  }
  const absl::Status told = EndGroups(writer_.client(), pods, finished_ ? "" : group.name);
  writer_.Note("tell Kueue that a pod group ends", told);
  status.Update(told);
  return status;
}

// One that is deleted by force is marked for those for whom its object will stay.
absl::Status JobResources::RemovePods(const std::vector<DeletePod>& removals,
                                      const PodViews& pods) {
  absl::Status status;
  for (const DeletePod& removal : removals) {
    const auto view =
        std::ranges::find_if(pods, [&](const auto& pod) { return pod->pod.uid == removal.uid; });
    if (removal.at_once && view != pods.end() && (*view)->group.held) {
      status.Update(MarkFailed(writer_.client(), **view));
    }
    status.Update(pods_.Remove(removal));
  }
  return status;
}

// What the job leaves behind, beside pods that still run.
absl::Status JobResources::CleanUp(const PodViews& pods) {
  const v1::CleanUpPolicy& policy = view_->job->spec().run_policy().clean_up_policy();
  absl::Status status;
  if (policy.pods() == v1::CleanUpPolicy::PODS_ALL) {
    for (const auto& view : pods) {
      if (!view->pod.deleting) {
        status.Update(pods_.Remove({.name = view->pod.name, .uid = view->pod.uid}));
      }
    }
  }
  const bool ended = controller_->state().phase != Phase::kSuspended;
  if (ended && policy.claims() == v1::CleanUpPolicy::CLAIMS_DELETE &&
      (AllEnded(pods) || LeavesPods())) {
    status.Update(claims_.DeleteAll(VolumesInUse()));
  }
  return status;
}

// What would be noticed late, or only when all is trained. False: it is not known yet.
absl::StatusOr<bool> JobResources::CheckBeforeFirstPod(const JobObjects& seen) {
  ADAMANT_RETURN_IF_ERROR(pods_.CheckTemplates(*view_->job));
  if (!output_checked_ && !controller::IsFinal(controller_->state().phase)) {
    ADAMANT_ASSIGN_OR_RETURN(output_checked_, CheckOutput(seen));
    return output_checked_;
  }
  return true;
}

// A claim of the user's is tried; another is made at once, so that what the API has against it is
// known.
absl::StatusOr<bool> JobResources::CheckOutput(const JobObjects& seen) {
  const Json own = OutputClaimObject(writer_.job(), *view_->job);
  if (own.is_null()) {
    const std::optional<ObservedPod> pod = ObserveExport(seen.pods, kOutputTrial);
    return output_.Check(*view_, pod ? &*pod : nullptr, Timeouts(), seen.sees_cluster);
  }
  const absl::Status made = writer_.CreateClaim(own);
  const absl::Status checked =
      made.ok() ? made : writer_.JudgeRefusal("the claim of spec.output", made);
  writer_.Note("create claim " + OutputClaimName(writer_.job().key.name, *view_->job), checked);
  ADAMANT_RETURN_IF_ERROR(checked);
  return true;
}

// Before the first pod, so that none runs without them. Who finds pods of an earlier leader leaves
// policies as they are.
absl::Status JobResources::MakePolicies() {
  if (policies_made_ || !settings_.network) {
    return absl::OkStatus();
  }
  for (Json& policy : JobPolicies(writer_.job(), view_->job->spec(), *settings_.network)) {
    const std::string name = KeyOf(policy).name;
    const absl::Status made = MakePolicy(std::move(policy));
    writer_.Note("create network policy " + name, made);
    ADAMANT_RETURN_IF_ERROR(made);
  }
  policies_made_ = true;
  return absl::OkStatus();
}

// A job that was suspended may have been changed meanwhile.
absl::Status JobResources::MakePolicy(Json policy) const {
  const ObjectKey key = KeyOf(policy);
  const Json spec = {{"spec", policy["spec"]}};
  ADAMANT_RETURN_IF_ERROR(writer_.CreateOnce(kNetworkPolicies, std::move(policy)).status());
  return controller_->state().starts == 1
             ? absl::OkStatus()
             : writer_.client().Patch(kNetworkPolicies, key, PatchType::kMerge, spec).status();
}

absl::Status JobResources::MakeExport(const PodViews& pods) {
  if (finished_) {
    return EndExports(pods);
  }
  ModelExport::Source source{.spec = *view_->job, .state = controller_->state(), .servers = {}};
  const int servers = view_->job->spec().distribution().parameter_servers().count();
  for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(servers); ++slot) {
    source.servers.push_back(controller_->AddressOf({Role::kParameterServer, slot}));
  }
  const std::optional<ObservedPod> pod =
      export_.wanted() == 0 ? std::nullopt : ObserveExport(pods, {.snapshot = export_.wanted()});
  const ModelExport::Result result = export_.Work(source, pod ? &*pod : nullptr, Timeouts());
  if (result.exported) {
    hooks_.handle(*result.exported);
  }
  return result.status;
}

// A job that ends, or is suspended, while its model is written does not wait for that.
absl::Status JobResources::EndExports(const PodViews& pods) {
  absl::Status status;
  for (const auto& view : pods) {
    const bool lives = view->pod.state == ObservedPod::State::kPending ||
                       view->pod.state == ObservedPod::State::kRunning;
    if (!view->IsProcess() && lives && !view->pod.deleting && !LeavesPods()) {
      status.Update(pods_.Remove({.name = view->pod.name, .uid = view->pod.uid}));
    }
  }
  return status;
}

Json JobResources::ServersTolerations() const {
  const controller::StartProcess any{.id = {.role = Role::kParameterServer}, .generation = 1};
  const Json pod = PodObject(writer_.job(), *view_->job, any, 1, settings_);
  const Json* tolerations = Find(pod, {"spec", "tolerations"});
  return tolerations == nullptr ? Json() : *tolerations;
}

absl::Status JobResources::MoveServer(const JobObjects& seen) {
  if (!moves_.IsDue(seen) || !controller_->CanSpareAServer()) {
    return absl::OkStatus();
  }
  const PodView* const view = moves_.Choose(seen, nodes_, ServersTolerations());
  if (view == nullptr) {
    return absl::OkStatus();
  }
  writer_.Record(false,
                 "Spreading",
                 controller::ToString(view->pod.process.id) + " leaves node " + view->node +
                     ", which it shares with another, as there are nodes without one");
  return pods_.Remove({.name = view->pod.name, .uid = view->pod.uid});
}

absl::Status JobResources::RemoveAll(const PodViews& pods) {
  absl::Status status;
  for (const auto& pod : pods) {
    if (pod->pod.state != ObservedPod::State::kEnded && !pod->pod.deleting) {
      status.Update(pods_.Remove({.name = pod->pod.name, .uid = pod->pod.uid}));
    }
  }
  return status;
}

std::optional<Clock::TimePoint> JobResources::NextTimer() const {
  std::optional<Clock::TimePoint> next;
  for (const auto& time :
       {next_loss_, export_.Next(), output_.Next(), pods_.NextUnseen(), group_.NextLook()}) {
    if (time && (!next || *time < *next)) {
      next = time;
    }
  }
  return next;
}

}  // namespace adamant::kube
