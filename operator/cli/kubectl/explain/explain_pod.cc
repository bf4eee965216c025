#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/explain/explain.h"
#include "services/common/base/exit_codes.h"

namespace adamant::kubectl {
namespace {

using kube::Find;
using kube::IntAt;
using kube::StringAt;
using Advice = std::vector<std::string>;

constexpr double kSlowSeconds = 60;  // more than a node takes for what it has everything for

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The newest warning about an object with one of these reasons; null if there is none.
const Json* WarningOf(const Observed& observed,
                      const Json& object,
                      std::initializer_list<std::string_view> reasons) {
  for (auto event = observed.events.rbegin(); event != observed.events.rend(); ++event) {
    if (StringAt(*event, {"involvedObject", "uid"}) == kube::UidOf(object) &&
        std::ranges::find(reasons, StringAt(*event, {"reason"})) != reasons.end()) {
      return &*event;
    }
  }
  return nullptr;
}

std::vector<std::string> ClaimsOf(const Json& pod) {
  std::vector<std::string> claims;
  for (const Json& volume : ListAt(pod, {"spec", "volumes"})) {
    if (std::string name = StringAt(volume, {"persistentVolumeClaim", "claimName"});
        !name.empty()) {
      claims.push_back(std::move(name));
    }
  }
  return claims;
}

// The claims of a pod that have no volume, and why.
std::vector<Cause> UnboundClaims(const Json& pod, const Observed& observed, Advice& advice) {
  std::vector<Cause> causes;
  const std::vector<std::string> wanted = ClaimsOf(pod);
  for (const Json& claim : observed.claims) {
    const std::string name = kube::KeyOf(claim).name;
    if (std::ranges::find(wanted, name) == wanted.end() ||
        StringAt(claim, {"status", "phase"}, "Pending") == "Bound") {
      continue;
    }
    Cause cause{"its claim " + name + " has no volume"};
    if (const Json* event = WarningOf(observed, claim, {"ProvisioningFailed", "FailedBinding"})) {
      cause.because.push_back({StringAt(*event, {"message"})});
      advice.push_back(
          "see `kubectl get storageclass`: the claim needs one that can make volumes; name it in "
          "storage.storageClass of the job, or mark one as the default");
    }
    causes.push_back(std::move(cause));
  }
  return causes;
}

// Where its volumes were made, which is where it may have to run.
std::vector<Cause> NodesOfClaims(const Json& pod, const Observed& observed) {
  std::vector<Cause> causes;
  const std::vector<std::string> wanted = ClaimsOf(pod);
  for (const Json& claim : observed.claims) {
    const std::string name = kube::KeyOf(claim).name;
    const std::string node =
        StringAt(claim, {"metadata", "annotations", "volume.kubernetes.io/selected-node"});
    if (!node.empty() && std::ranges::find(wanted, name) != wanted.end()) {
      Cause cause{"its claim " + name};
      cause.text.append(" was made for node ").append(node);
      causes.push_back(std::move(cause));
    }
  }
  return causes;
}

void AdviseOnScheduling(std::string_view message, Advice& advice) {
  if (Contains(message, "Insufficient")) {
    advice.emplace_back(
        "ask for less in spec.pods.ROLE.spec of the job, start fewer processes, or add nodes");
  }
  if (Contains(message, "unschedulable")) {
    advice.emplace_back(
        "let pods onto nodes that were cordoned, once they are to take some again: kubectl "
        "uncordon NODE");
  }
  if (Contains(message, "taint")) {
    advice.emplace_back(
        "add tolerations for the taints to spec.pods.ROLE.spec, or take the taints off nodes");
  }
  if (Contains(message, "affinity") || Contains(message, "selector")) {
    advice.emplace_back(
        "see that nodes have the labels that affinity and nodeSelector in spec.pods.ROLE.spec ask "
        "for; a pod must also run where its volume is");
  }
}

// A claim of the pod is not there, or is going. Only what the job names is the user's to make.
void AdviseOnMissingClaims(const Json& pod,
                           const Json& job,
                           std::string_view message,
                           Advice& advice) {
  if (!Contains(message, "persistentvolumeclaim") ||
      !(Contains(message, "not found") || Contains(message, "being deleted"))) {
    return;
  }
  const Json* spec = Find(job, {"spec"});
  const std::string named = spec == nullptr ? "" : spec->dump();
  for (const std::string& claim : ClaimsOf(pod)) {
    const std::string quoted = '"' + claim + '"';
    if (!Contains(message, quoted)) {
      continue;
    }
    if (Contains(named, quoted)) {
      advice.emplace_back("make the claim that the job names, or correct its name");
    } else {
      advice.push_back("wait: claim " + claim +
                       " is the operator's to make, and it soon starts another pod with a new one");
    }
  }
}

// Kueue says in its Workload, which has the pod group's name, what is missing.
Cause WhoHoldsGates(const Json& pod, const Observed& observed, Advice& advice) {
  const std::string queue = StringAt(pod, {"metadata", "labels", "kueue.x-k8s.io/queue-name"});
  const std::string group = StringAt(pod, {"metadata", "labels", "kueue.x-k8s.io/pod-group-name"});
  if (queue.empty()) {
    advice.emplace_back("wait for whoever holds the gates in its spec.schedulingGates, as a queue");
    return {StringAt(*ConditionOf(pod, "PodScheduled"), {"message"})};
  }
  advice.push_back("see what the queue waits for: kubectl describe " +
                   (group.empty() ? "localqueue " + queue : "workload " + group) +
                   NamespaceFlag(observed));
  return {"the queue " + queue + " has not admitted " + (group.empty() ? "it" : "its pod group")};
}

std::optional<Cause> Unscheduled(const Json& pod, const Observed& observed, Advice& advice) {
  const Json* scheduled = ConditionOf(pod, "PodScheduled");
  if (scheduled == nullptr || StringAt(*scheduled, {"status"}) != "False") {
    return std::nullopt;
  }
  const std::string message = StringAt(*scheduled, {"message"});
  if (StringAt(*scheduled, {"reason"}) == "SchedulingGated") {
    return Cause{"may not be scheduled yet", {WhoHoldsGates(pod, observed, advice)}};
  }
  Cause cause{"cannot be scheduled"};
  if (!message.empty()) {
    cause.because.push_back({message});
  }
  for (Cause& node : NodesOfClaims(pod, observed)) {
    cause.because.push_back(std::move(node));
  }
  for (Cause& claim : UnboundClaims(pod, observed, advice)) {
    cause.because.push_back(std::move(claim));
  }
  AdviseOnScheduling(message, advice);
  AdviseOnMissingClaims(pod, observed.job, message, advice);
  return cause;
}

std::optional<Cause> WaitingContainer(const Json& status, Advice& advice) {
  const std::string reason = StringAt(status, {"state", "waiting", "reason"});
  const std::string message = StringAt(status, {"state", "waiting", "message"});
  const std::string image = StringAt(status, {"image"});
  const std::vector<Cause> because =
      message.empty() ? std::vector<Cause>() : std::vector<Cause>{Cause{message}};
  if (Contains(reason, "Image")) {  // ImagePullBackOff, ErrImagePull, ErrImageNeverPull, …
    advice.push_back("bring the image " + image +
                     " to the nodes or to a registry that they can pull from; docs/install.md, "
                     "\"Bring it to the nodes\"");
    return Cause{"does not get its image " + image + " (" + reason + ")", because};
  }
  if (reason == "CrashLoopBackOff") {
    advice.emplace_back("see what its containers beside Adamant's write: `kubectl logs`");
    return Cause{"has a container that ends again and again", because};
  }
  if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
    advice.emplace_back(
        "correct what spec.pods.ROLE.spec of the job says of this container: "
        "ConfigMaps, secrets, commands, users");
    return Cause{"cannot start its container (" + reason + ")", because};
  }
  return std::nullopt;
}

std::string HowItEnded(const Json& ended) {
  const std::int64_t code = IntAt(ended, {"exitCode"});
  const std::string reason = StringAt(ended, {"reason"});
  if (reason == "OOMKilled") {
    return "was killed because it used more memory than its limit (OOMKilled)";
  }
  std::string how = code > 128 ? "was killed by signal " + std::to_string(code - 128)
                               : "exited with code " + std::to_string(code);
  return how +
         (reason.empty() || reason == "Error" || reason == "Completed" ? "" : " (" + reason + ")");
}

std::optional<Cause> EndedContainer(const Json& pod,
                                    const Json& status,
                                    const Observed& observed,
                                    Advice& advice) {
  const Json* ended = Find(status, {"state", "terminated"});
  if (ended == nullptr || IntAt(*ended, {"exitCode"}) == 0) {
    return std::nullopt;
  }
  Cause cause{HowItEnded(*ended)};
  const auto line = observed.last_lines.find(kube::KeyOf(pod).name);
  if (line != observed.last_lines.end()) {
    cause.because.push_back({"it said last: " + line->second});
  } else if (std::string message = StringAt(*ended, {"message"}); !message.empty()) {
    cause.because.push_back({std::move(message)});
  }
  if (StringAt(*ended, {"reason"}) == "OOMKilled") {
    advice.emplace_back("raise resources.limits.memory in spec.pods.ROLE.spec of the job");
  } else if (IntAt(*ended, {"exitCode"}) == kBadConfiguration) {
    advice.emplace_back("correct what its log names; another start would end the same way");
  } else {
    advice.push_back("see its log: kubectl adamant logs " +
                     StringAt(observed.job, {"metadata", "name"}) + " " + SlotOf(pod) +
                     NamespaceFlag(observed));
  }
  return cause;
}

// The pod was ended from outside; its containers may never have run.
std::optional<Cause> EndedByNode(const Json& pod, Advice& advice) {
  const std::string reason = StringAt(pod, {"status", "reason"});
  if (StringAt(pod, {"status", "phase"}) != "Failed" || reason.empty()) {
    return std::nullopt;
  }
  Cause cause{"was ended by its node " + StringAt(pod, {"spec", "nodeName"}) + " (" + reason + ")"};
  if (std::string message = StringAt(pod, {"status", "message"}); !message.empty()) {
    cause.because.push_back({std::move(message)});
  }
  if (reason == "Evicted") {
    advice.emplace_back(
        "the node ran short of what the message names: ask for it in resources.requests of "
        "spec.pods.ROLE.spec, so that the pod gets a node that has it");
  }
  return cause;
}

std::optional<Cause> LostNode(const Json& pod, const Observed& observed, Advice& advice) {
  const std::string name = StringAt(pod, {"spec", "nodeName"});
  for (const Json& node : observed.nodes) {
    const Json* ready = kube::KeyOf(node).name == name ? ConditionOf(node, "Ready") : nullptr;
    if (ready == nullptr || StringAt(*ready, {"status"}) == "True") {
      continue;
    }
    std::string hint = "bring the node " + name;
    hint.append(" back, or remove it: kubectl delete node ").append(name);
    advice.push_back(std::move(hint));
    const double seconds = SecondsSince(StringAt(*ready, {"lastTransitionTime"}), observed.now);
    return Cause{"is on node " + name + ", which is lost for " + cli::FormatSeconds(seconds),
                 {Cause{StringAt(*ready, {"message"}, "it is not ready")}}};
  }
  return std::nullopt;
}

std::optional<Cause> SlowStart(const Json& pod, const Observed& observed, Advice& advice) {
  if (StringAt(pod, {"status", "phase"}, "Pending") != "Pending") {
    return std::nullopt;
  }
  if (const Json* event = WarningOf(
          observed,
          pod,
          {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume"})) {
    advice.emplace_back("see that volumes, ConfigMaps and the network of its node are in order");
    return Cause{"cannot be set up by its node", {Cause{StringAt(*event, {"message"})}}};
  }
  const double seconds =
      SecondsSince(StringAt(pod, {"metadata", "creationTimestamp"}), observed.now);
  std::string text = "is being started, for " + cli::FormatSeconds(seconds);
  if (seconds > kSlowSeconds) {
    advice.push_back("see its events: kubectl describe pod " + kube::KeyOf(pod).name +
                     NamespaceFlag(observed));
  }
  return Cause{std::move(text)};
}

}  // namespace

void LastLine::Add(std::string_view line) {
  if (line.empty()) {
    return;
  }
  last_ = line;
  if (!Contains(line, R"("level":"info")") && !Contains(line, R"("level":"debug")")) {
    telling_ = line;
  }
}

bool HasFailed(const Json& pod) {
  const Json& statuses = ListAt(pod, {"status", "containerStatuses"});
  return StringAt(pod, {"status", "phase"}) == "Failed" ||
         std::ranges::any_of(statuses, [](const Json& status) {
           return IntAt(status, {"state", "terminated", "exitCode"}) != 0;
         });
}

std::optional<Cause> DiagnosePod(const Json& pod, const Observed& observed, Advice& advice) {
  if (auto cause = Unscheduled(pod, observed, advice)) {
    return cause;
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : ListAt(pod, {"status", list})) {
      if (auto cause = WaitingContainer(status, advice)) {
        return cause;
      }
      if (auto cause = EndedContainer(pod, status, observed, advice)) {
        return cause;
      }
    }
  }
  if (auto cause = EndedByNode(pod, advice)) {
    return cause;
  }
  if (HasEnded(pod)) {
    return std::nullopt;
  }
  if (auto cause = LostNode(pod, observed, advice)) {
    return cause;
  }
  if (!StringAt(pod, {"metadata", "deletionTimestamp"}).empty()) {
    return Cause{"is being deleted"};
  }
  return SlowStart(pod, observed, advice);
}

}  // namespace adamant::kubectl
