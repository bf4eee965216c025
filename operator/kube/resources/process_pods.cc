#include "operator/kube/resources/process_pods.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/kube/api/orphans.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube_client/api/api_status.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {

using controller::StartProcess;

namespace {

constexpr std::chrono::milliseconds kRetry{1'000};  // what was refused

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

}  // namespace

std::vector<ObservedPod> ProcessPods::Complete(std::vector<ObservedPod> observed,
                                               std::span<const StartProcess> awaited) {
  for (const ObservedPod& pod : observed) {
    known_.OnSeen(pod.process, pod.uid);
  }
  AskForUnseen();
  AskForUnknown(awaited);
  known_.Complete(writer_.job().key.name, observed);
  return observed;
}

void ProcessPods::AskForUnseen() {
  const ObjectKey& job = writer_.job().key;
  for (const KnownPods::Unseen& made : known_.TakeUnseen(writer_.clock().Now())) {
    const auto pod = writer_.client().Get(kPods, {job.ns, PodName(job.name, made.process)});
    if (absl::IsNotFound(pod.status()) || (pod.ok() && UidOf(*pod) != made.uid)) {
      known_.OnGone(made.uid);
    }
  }
}

// A request that had no answer may have made it all the same.
void ProcessPods::AskForUnknown(std::span<const StartProcess> awaited) {
  const ObjectKey& job = writer_.job().key;
  for (const StartProcess& process : awaited) {
    if (known_.Knows(process)) {
      continue;
    }
    const auto pod = writer_.client().Get(kPods, {job.ns, PodName(job.name, process)});
    if (absl::IsNotFound(pod.status()) || (pod.ok() && !IsOf(*pod, writer_.job()))) {
      known_.OnMissing(process);
    } else if (pod.ok()) {
      known_.OnMade(process, UidOf(*pod), writer_.clock().Now());
    }
  }
}

absl::Status ProcessPods::CheckTemplates(const v1::TrainingJob& spec) {
  if (templates_checked_) {
    return absl::OkStatus();
  }
  for (const auto& [role, field] : kTemplates) {
    const StartProcess process{.id = {.role = role, .slot = 0}, .generation = 1};
    const Json pod =
        PodObject(writer_.job(), spec, process, 1, settings_, {.name = writer_.job().uid});
    const absl::Status checked =
        writer_.client().Create(kPods, pod, {.strict = true, .dry_run = true}).status();
    const bool answered = checked.ok() || IsAnswer(checked);
    writer_.Note(std::string("check ") + field + " in a dry run",
                 answered ? absl::OkStatus() : checked);
    if (!answered) {
      return checked;
    }
    if (absl::IsInvalidArgument(checked) && !IsOfDryRun(checked)) {
      return writer_.JudgeRefusal(field, checked);
    }
  }
  templates_checked_ = true;
  return absl::OkStatus();
}

absl::Status ProcessPods::Create(const v1::TrainingJob& spec,
                                 std::vector<StartProcess> processes,
                                 const PodGroup& group,
                                 const VolumeOf& volume_of) {
  std::ranges::stable_sort(processes, {}, [this](const StartProcess& process) {
    return writer_.failed().LastSilence(CreationOf(process));
  });
  absl::Status status;
  bool silent = false;
  for (const StartProcess& process : processes) {
    const absl::Status refusal = known_.RefusalOf(process, writer_.clock().Now());
    if (silent || !refusal.ok()) {
      writer_.failed().Keep(CreationOf(process));
      status.Update(refusal);
      continue;
    }
    const absl::Status created = TryToCreate(spec, process, group, volume_of(process.id));
    silent = !created.ok() && !IsAnswer(created);
    status.Update(created);
  }
  return status;
}

absl::Status ProcessPods::TryToCreate(const v1::TrainingJob& spec,
                                      const StartProcess& process,
                                      const PodGroup& group,
                                      std::uint64_t volume) {
  absl::Status created = CreateOne(spec, process, group, volume);
  if (!created.ok()) {
    known_.OnRefused(process, created, writer_.clock().Now() + kRetry);
  }
  writer_.Note(CreationOf(process), created);
  return created;
}

absl::Status ProcessPods::CreateOne(const v1::TrainingJob& spec,
                                    const StartProcess& process,
                                    const PodGroup& group,
                                    std::uint64_t volume) {
  const std::string name = controller::ToString(process.id);
  if (process.id.role == controller::Role::kParameterServer) {
    const absl::Status claimed = claims_.Make(spec, process.id, volume);
    if (!claimed.ok()) {
      return writer_.JudgeRefusal("the claim of " + name, claimed);
    }
  }
  const absl::StatusOr<std::string> uid =
      writer_.CreateOnce(kPods, PodObject(writer_.job(), spec, process, volume, settings_, group));
  if (!uid.ok()) {
    return writer_.JudgeRefusal("the pod of " + name, uid.status());
  }
  known_.OnMade(process, *uid, writer_.clock().Now());
  return absl::OkStatus();
}

absl::Status ProcessPods::Remove(const DeletePod& removal) {
  ADAMANT_ASSIGN_OR_RETURN(const bool was_there, writer_.RemovePod(removal));
  if (!was_there) {
    known_.OnGone(removal.uid);
  }
  return absl::OkStatus();
}

}  // namespace adamant::kube
