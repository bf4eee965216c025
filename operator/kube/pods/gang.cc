#include "operator/kube/pods/gang.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "operator/kube/pods/pod_view.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

constexpr char kGroupLabel[] = "kueue.x-k8s.io/pod-group-name";
constexpr char kCount[] = "kueue.x-k8s.io/pod-group-total-count";
constexpr char kRetriable[] = "kueue.x-k8s.io/retriable-in-group";
constexpr char kFinalizer[] = "kueue.x-k8s.io/managed";
constexpr char kTerminated[] = "143";  // as a shell says it of one that SIGTERM has ended

int Servers(const v1::Distribution& distribution) {
  return distribution.data_servers() + distribution.parameter_servers().count();
}

bool HasPlace(const PodGroup& group,
              const controller::SlotId& process,
              const v1::Distribution& distribution) {
  const bool is_more = process.role == controller::Role::kWorker && group.pods > 0 &&
                       static_cast<int>(process.slot) >= group.pods - Servers(distribution);
  return !is_more && !group.done.contains(process);
}

// Of what has ended with code 0 Kueue wants no replacement: it takes it for done.
void EndNotAsDone(Json& pod) {
  pod["spec"]["containers"][0]["env"].push_back(
      {{"name", "ADAMANT_SIGNALLED_EXIT_CODE"}, {"value", kTerminated}});  // images may be older
}

// OK as well where it is gone, or another has its name by now.
absl::Status PatchPod(const Client& client,
                      const PodView& pod,
                      Json patch,
                      std::string_view subresource) {
  patch["metadata"]["uid"] = pod.pod.uid;
  const absl::Status patched =
      client.Patch(kPods, {pod.ns, pod.pod.name}, PatchType::kMerge, patch, subresource).status();
  return absl::IsNotFound(patched) || absl::IsAborted(patched) ? absl::OkStatus() : patched;
}

}  // namespace

std::string GroupName(const std::string& job_uid, std::uint64_t start) {
  return job_uid + "-" + std::to_string(start);
}

PodGroup GroupOf(std::string name, const std::vector<std::shared_ptr<const PodView>>& pods) {
  PodGroup group{.name = std::move(name)};
  for (const auto& view : pods) {
    if (view->group.name == group.name) {
      group.pods = view->group.pods;
      if (view->pod.exit_code == 0) {
        group.done.insert(view->pod.process.id);
      }
    }
  }
  return group;
}

void AddGang(const PodGroup& group,
             const controller::SlotId& process,
             const v1::JobSpec& spec,
             Json& pod) {
  const v1::Scheduling& scheduling = spec.pods().scheduling();
  Json& labels = pod["metadata"]["labels"];
  if (scheduling.has_kueue_queue()) {
    const v1::Distribution& distribution = spec.distribution();
    labels["kueue.x-k8s.io/queue-name"] = scheduling.kueue_queue();
    if (HasPlace(group, process, distribution)) {
      labels[kGroupLabel] = group.name;
      pod["metadata"]["annotations"][kCount] = std::to_string(
          group.pods > 0 ? group.pods : distribution.workers() + Servers(distribution));
      EndNotAsDone(pod);
    }
  } else if (scheduling.has_pod_group()) {
    labels["scheduling.x-k8s.io/pod-group"] = scheduling.pod_group();
  }
}

GroupMark ReadGroup(const Json& pod) {
  const auto annotation = [&](const char* name) {
    return StringAt(pod, {"metadata", "annotations", name});
  };
  GroupMark group{.name = StringAt(pod, {"metadata", "labels", kGroupLabel}),
                  .ends = annotation(kRetriable) == "false"};
  const std::string count = annotation(kCount);
  std::from_chars(count.data(), count.data() + count.size(), group.pods);
  if (const Json* finalizers = Find(pod, {"metadata", "finalizers"})) {
    group.held = std::ranges::find(*finalizers, Json(kFinalizer)) != finalizers->end();
  }
  return group;
}

absl::Status EndGroups(const Client& client,
                       const std::vector<std::shared_ptr<const PodView>>& pods,
                       const std::string& except) {
  std::set<std::string> told = {"", except};
  for (const auto& pod : pods) {
    if (pod->group.held && pod->group.ends) {
      told.insert(pod->group.name);
    }
  }
  absl::Status status;
  for (const auto& pod : pods) {  // one of each group is enough
    if (pod->group.held && !told.contains(pod->group.name)) {
      const Json patch = {{"metadata", {{"annotations", {{kRetriable, "false"}}}}}};
      status.Update(PatchPod(client, *pod, patch, ""));
      told.insert(pod->group.name);
    }
  }
  return status;
}

absl::Status MarkFailed(const Client& client, const PodView& pod) {
  const Json patch = {
      {"status",
       {{"phase", "Failed"}, {"reason", "NodeLost"}, {"message", "its node has been away"}}}};
  return PatchPod(client, pod, patch, "status");
}

}  // namespace adamant::kube
