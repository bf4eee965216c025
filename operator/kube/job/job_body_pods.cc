#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/kube/api/orphans.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/status/job_view.h"
#include "operator/kube/volumes/claim_object.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"

// The pods of a job.
namespace adamant::kube {

using controller::Phase;
using controller::StartProcess;

namespace {

constexpr std::chrono::milliseconds kRetry{1'000};

constexpr std::pair<controller::Role, const char*> kTemplates[] = {
    {controller::Role::kDataServer, "spec.pods.dataServer"},
    {controller::Role::kParameterServer, "spec.pods.parameterServer"},
    {controller::Role::kWorker, "spec.pods.worker"}};

// A webhook that cannot be asked in a dry run says nothing of the pod.
bool IsOfDryRun(const absl::Status& status) {
  return status.message().find("does not support dry run") != std::string_view::npos;
}

std::string CreationOf(const StartProcess& process) {
  return "create pod " + controller::ToString(process.id);
}

std::chrono::milliseconds Milliseconds(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) +
         std::chrono::floor<std::chrono::milliseconds>(std::chrono::nanoseconds(duration.nanos()));
}

}  // namespace

bool JobBody::AllEnded(const PodViews& pods) {
  return std::ranges::all_of(
      pods, [](const auto& pod) { return pod->pod.state == ObservedPod::State::kEnded; });
}

// Of a job that was suspended some pods may be left.
bool JobBody::NoProcessRuns(const PodViews& pods) {
  return std::ranges::all_of(pods, [](const auto& pod) {
    return pod->export_snapshot != 0 || pod->pod.state == ObservedPod::State::kEnded;
  });
}

void JobBody::ObserveNodes(const JobObjects& seen) {
  for (const auto& pod : seen.pods) {
    if (!pod->node.empty() && pod->export_snapshot == 0) {
      ran_on_[pod->pod.process] = pod->node;
    }
  }
  nodes_.clear();
  if (!seen.node_of) {
    return;
  }
  for (const auto& pod : seen.pods) {
    if (!pod->node.empty()) {
      nodes_.try_emplace(pod->node, seen.node_of(pod->node));
    }
  }
  absences_.Update(nodes_, context_.clock);
}

// A pod and what its node has to do with it. Kubernetes hears of a node through its API server:
// when that was away, so seem all nodes. Whoever is heard by us runs.
ObservedPod JobBody::ObserveOne(const PodView& view) const {
  ObservedPod pod = view.pod;
  const auto away = absences_.Of(view.node, context_.clock.Now());
  if (away && !controller_->Hears(pod.process)) {
    pod.node_away = std::chrono::floor<std::chrono::milliseconds>(*away);
  }
  const auto node = nodes_.find(view.node);
  const auto waiting = shut_out_.find(view.pod.uid);
  if (waiting != shut_out_.end() && waiting->second.since &&
      !controller_->NeedsVolumeOf(view.pod.process.id.slot)) {
    pod.shut_out = std::chrono::floor<std::chrono::milliseconds>(context_.clock.Now() -
                                                                 *waiting->second.since);
  }
  if (waiting != shut_out_.end()) {
    pod.deleted_claim = waiting->second.deleted_claim;
  }
  pod.moves = view.pod.uid == moving_;
  pod.node_out_of_service =
      node != nodes_.end() && node->second != nullptr && node->second->out_of_service;
  return pod;
}

NodePatience JobBody::Patience() const {
  const v1::Detection& detection = view_->job->spec().detection();
  return {.unreachable = Milliseconds(detection.node_unreachable()),
          .force_delete = Milliseconds(detection.force_delete()),
          .cordoned = Milliseconds(detection.node_cordoned())};
}

std::vector<ObservedPod> JobBody::Observe(const PodViews& pods) {
  std::vector<ObservedPod> observed;
  for (const auto& view : pods) {
    if (view->export_snapshot == 0) {
      observed.push_back(ObserveOne(*view));
      pod_memory_.OnSeen(view->pod.process, view->pod.uid);
    }
  }
  AskForUnseen();
  pod_memory_.Complete(job_.key.name, observed);
  return observed;
}

bool JobBody::LeavesPods() const {
  const Phase phase = controller_->state().phase;
  return (phase == Phase::kSucceeded || phase == Phase::kFailed) && kube::LeavesPods(*view_->job);
}

// A scheduler, or who holds a pod's scheduling gates, may take as long as it wants. Why pods do not
// start is told when the job does not, in time.
void JobBody::HandleWaiting(const PodViews& pods) {
  controller::ProcessesWait waiting;
  for (const auto& view : pods) {
    if (view->export_snapshot != 0 || view->pod.state != ObservedPod::State::kPending) {
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
    // Also if it may be asked for again by now.
    const absl::Status refusal = pod_memory_.RefusalOf(process, Clock::TimePoint::min());
    if (!refusal.ok()) {
      waiting.why[process.id] = WordsOf(refusal);
    }
  }
  if (!waiting.processes.empty() || !waiting.why.empty()) {
    Handle(waiting);
  }
}

// A pod that was deleted as soon as it was made may be in no view at all.
void JobBody::AskForUnseen() {
  for (const PodMemory::Unseen& made : pod_memory_.TakeUnseen(context_.clock.Now())) {
    const auto pod = client_.Get(kPods, {job_.key.ns, PodName(job_.key.name, made.process)});
    if (absl::IsNotFound(pod.status()) || (pod.ok() && UidOf(*pod) != made.uid)) {
      pod_memory_.OnGone(made.uid);
    }
  }
}

absl::Status JobBody::MakePods(const PodViews& pods) {
  HandleWaiting(pods);
  HandleZones();
  // What has happened may change what is wanted, but only what is stored is acted on.
  const PodPlan seen = Reconcile(controller_->Wanted(), Observe(pods), Patience());
  HandleTogether([&] {
    for (const controller::ProcessExited& exited : seen.exited) {
      Handle(exited);
    }
  });
  if (!held_.empty() || !taken_over_.ok()) {
    return taken_over_;
  }
  const std::vector<StartProcess> wanted = controller_->Wanted();
  pod_memory_.ForgetBefore(wanted);
  for (const StartProcess& process : wanted) {
    std::erase_if(ran_on_, [&](const auto& entry) {
      return entry.first.id == process.id && entry.first.generation + 1 < process.generation;
    });
  }
  PodPlan plan = Reconcile(wanted, Observe(pods), Patience());
  next_loss_.reset();
  if (plan.again_in) {
    next_loss_ = context_.clock.Now() + *plan.again_in;
  }
  absl::Status status;
  if (!plan.create.empty() && NoProcessRuns(pods)) {
    const absl::StatusOr<bool> may_begin = CheckBeforeFirstPod(pods);
    if (!may_begin.ok() || !*may_begin || controller::IsFinal(controller_->state().phase)) {
      return may_begin.status();
    }
  }
  const PodGroup group = GroupOf(GroupName(job_.uid, controller_->state().starts), pods);
  status.Update(CreatePods(std::move(plan.create), group));
  if (!LeavesPods()) {
    for (const DeletePod& removal : plan.remove) {
      status.Update(MarkRemoval(removal, pods));
      status.Update(RemovePod(removal));
    }
  }
  status.Update(finished_ ? CleanUp(pods) : DeleteLeftClaims());
  const absl::Status told = EndGroups(client_, pods, finished_ ? "" : group.name);
  NoteWrite("tell Kueue that a pod group ends", told);
  status.Update(told);
  return status;
}

// Of one that is deleted by force, to those for whom its object will stay.
absl::Status JobBody::MarkRemoval(const DeletePod& removal, const PodViews& pods) const {
  const auto view =
      std::ranges::find_if(pods, [&](const auto& pod) { return pod->pod.uid == removal.uid; });
  const bool counts = removal.at_once && view != pods.end() && (*view)->group.held;
  return counts ? MarkFailed(client_, **view) : absl::OkStatus();
}

// What the job leaves behind, beside pods that still run.
absl::Status JobBody::CleanUp(const PodViews& pods) {
  const v1::CleanUpPolicy& policy = view_->job->spec().run_policy().clean_up_policy();
  absl::Status status;
  if (policy.pods() == v1::CleanUpPolicy::PODS_ALL) {
    for (const auto& view : pods) {
      if (!view->pod.deleting) {
        status.Update(RemovePod({.name = view->pod.name, .uid = view->pod.uid}));
      }
    }
  }
  const bool ended = controller_->state().phase != Phase::kSuspended;
  if (ended && policy.claims() == v1::CleanUpPolicy::CLAIMS_DELETE &&
      (AllEnded(pods) || LeavesPods())) {
    status.Update(DeleteAllClaims());
  }
  return status;
}

// What would be noticed late, or only when all is trained. False: it is not known yet.
absl::StatusOr<bool> JobBody::CheckBeforeFirstPod(const PodViews& pods) {
  if (!templates_checked_) {
    ADAMANT_RETURN_IF_ERROR(CheckTemplates());
  }
  if (!output_checked_ && !controller::IsFinal(controller_->state().phase)) {
    ADAMANT_ASSIGN_OR_RETURN(output_checked_, CheckOutput(pods));
    return output_checked_;
  }
  return true;
}

// What is wrong in spec.pods is found before anything is made, not when the first process of that
// role is started. Other refusals come again when the pods are made, and are told then.
absl::Status JobBody::CheckTemplates() {
  for (const auto& [role, field] : kTemplates) {
    const StartProcess process{.id = {.role = role, .slot = 0}, .generation = 1};
    const absl::Status checked =
        client_
            .Create(kPods,
                    PodObject(job_, *view_->job, process, 1, context_.pods, {.name = job_.uid}),
                    {.strict = true, .dry_run = true})
            .status();
    const bool answered = checked.ok() || IsAnswer(checked);
    NoteWrite(std::string("check ") + field + " in a dry run",
              answered ? absl::OkStatus() : checked);
    if (!answered) {
      return checked;
    }
    if (absl::IsInvalidArgument(checked) && !IsOfDryRun(checked)) {
      return Refused(field, checked);
    }
  }
  templates_checked_ = true;
  return absl::OkStatus();
}

// One for which there is no answer keeps the others waiting until the next time, and then is the
// last to be asked for.
absl::Status JobBody::CreatePods(std::vector<StartProcess> processes, const PodGroup& group) {
  std::ranges::stable_sort(processes, {}, [this](const StartProcess& process) {
    return failed_writes_.LastSilence(CreationOf(process));
  });
  absl::Status status;
  bool silent = false;
  for (const StartProcess& process : processes) {
    const absl::Status refusal = pod_memory_.RefusalOf(process, context_.clock.Now());
    if (silent || !refusal.ok()) {
      failed_writes_.Keep(CreationOf(process));
      status.Update(refusal);
      continue;
    }
    const absl::Status created = TryToCreatePod(process, group);
    silent = !created.ok() && !IsAnswer(created);
    status.Update(created);
  }
  return status;
}

// What was refused is not asked for again with every event.
absl::Status JobBody::TryToCreatePod(const StartProcess& process, const PodGroup& group) {
  absl::Status created = CreatePod(process, group);
  if (!created.ok()) {
    pod_memory_.OnRefused(process, created, context_.clock.Now() + kRetry);
  }
  NoteWrite(CreationOf(process), created);
  return created;
}

absl::Status JobBody::CreatePod(const StartProcess& process, const PodGroup& group) {
  const std::string name = controller::ToString(process.id);
  const std::uint64_t volume = controller_->VolumeOf(process.id);
  if (process.id.role == controller::Role::kParameterServer) {
    const absl::Status claimed = MakeServersClaim(process.id, volume);
    if (!claimed.ok()) {
      return Refused("the claim of " + name, claimed);
    }
  }
  std::string pod_uid;
  const absl::Status created = CreateOnce(
      kPods, PodObject(job_, *view_->job, process, volume, context_.pods, group), pod_uid);
  if (!created.ok()) {
    return Refused("the pod of " + name, created);
  }
  pod_memory_.OnMade(process, pod_uid, context_.clock.Now());
  return absl::OkStatus();
}

// What is not valid will not be later either: it ends the job.
absl::Status JobBody::Refused(const std::string& what, const absl::Status& why) {
  if (!absl::IsInvalidArgument(why)) {
    return why;
  }
  const std::string text = "the API refuses " + what + ": " + WordsOf(why);
  Record(true, "FailedCreate", text);
  Handle(controller::BodyFailed{text});
  return absl::OkStatus();
}

absl::Status JobBody::RemovePod(const DeletePod& removal) {
  DeleteOptions options{.uid = removal.uid};
  if (removal.at_once) {
    options.grace_period = std::chrono::seconds(0);
  }
  const absl::Status status = client_.Delete(kPods, {job_.key.ns, removal.name}, options);
  if (absl::IsNotFound(status) || absl::IsAborted(status)) {  // gone, or another of that name
    pod_memory_.OnGone(removal.uid);
    return absl::OkStatus();
  }
  NoteWrite("delete pod " + removal.name, status);
  return status;
}

// An object that is there already is the one that an unseen write of ours has made, if it is this
// job's.
absl::Status JobBody::CreateOnce(const Resource& resource, Json object, std::string& uid) {
  const ObjectKey key = KeyOf(object);
  absl::StatusOr<Json> created = client_.Create(resource, std::move(object), {.strict = true});
  if (absl::IsAlreadyExists(created.status())) {
    created = client_.Get(resource, key);
    if (created.ok() && !IsOf(*created, job_)) {
      return MakeWay(client_, resource, *created, job_);
    }
  }
  ADAMANT_RETURN_IF_ERROR(created.status());
  uid = UidOf(*created);
  return absl::OkStatus();
}

}  // namespace adamant::kube
