#include "operator/cli/kubectl/explain/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/cluster/restarts.h"

namespace adamant::kubectl {
namespace {

using kube::Find;
using kube::IntAt;
using kube::StringAt;
using Advice = std::vector<std::string>;

constexpr std::size_t kMostLosses = 5;      // of the newest that are told
constexpr double kOperatorSeconds = 15;     // within which an operator has looked at a job
constexpr double kJoinSeconds = 60;         // within which processes have joined a new leader
constexpr std::size_t kMostPods = 10;       // whose causes are told one by one
constexpr double kNoProgressSeconds = 300;  // in which a running job usually changes its status

std::string SeeOperators(const Observed& observed) {
  return "see whether the operators run: kubectl -n " + OperatorsNamespace(observed.lease) +
         " get pods; docs/install.md says how they are installed";
}

std::string NameOf(const Observed& observed) { return kube::KeyOf(observed.job).name; }

std::string SinceText(std::string_view time, const Observed& observed) {
  return cli::FormatSeconds(SecondsSince(time, observed.now));
}

bool Holds(const Json& job, std::string_view type, std::string_view status) {
  const Json* condition = ConditionOf(job, type);
  return condition != nullptr && StringAt(*condition, {"status"}) == status;
}

std::string MessageOf(const Json& job, std::string_view type) {
  const Json* condition = ConditionOf(job, type);
  return condition == nullptr ? "" : StringAt(*condition, {"message"});
}

std::string ReasonOf(const Json& job, std::string_view type) {
  const Json* condition = ConditionOf(job, type);
  return condition == nullptr ? "" : StringAt(*condition, {"reason"});
}

// The job's own events of some kinds, the newest last.
std::vector<const Json*> EventsOfJob(const Observed& observed,
                                     std::initializer_list<std::string_view> reasons) {
  std::vector<const Json*> events;
  for (const Json& event : observed.events) {
    if (StringAt(event, {"involvedObject", "uid"}) == kube::UidOf(observed.job) &&
        std::ranges::any_of(reasons,
                            [&](std::string_view reason) { return HasReason(event, reason); })) {
      events.push_back(&event);
    }
  }
  return events;
}

// What processes were lost, the newest first, and with it why the job restarted.
std::vector<Cause> Losses(const Observed& observed, Advice& advice) {
  std::vector<Cause> causes;
  const std::vector<const Json*> events = EventsOfJob(observed, {"Lost", "Disrupted"});
  for (auto event = events.rbegin(); event != events.rend() && causes.size() < kMostLosses;
       ++event) {
    const std::string message = StringAt(**event, {"message"});
    Cause cause{message + ", " + SinceText(TimeOf(**event), observed) + " ago"};
    for (const Json& pod : observed.pods) {
      if (HasFailed(pod) && message.starts_with(SlotOf(pod) + " ") && event == events.rbegin()) {
        if (auto why = DiagnosePod(pod, observed, advice)) {
          cause.because = std::move(why->because);
        }
      }
    }
    causes.push_back(std::move(cause));
  }
  return causes;
}

// Newest of each slot, and the pods that write models.
std::map<std::string, const Json*> NewestPods(const Observed& observed) {
  std::map<std::string, const Json*> newest;
  for (const Json& pod : observed.pods) {
    const std::string slot = SlotOf(pod);
    if (slot.empty()) {
      continue;
    }
    const Json*& best = newest[slot];
    if (best == nullptr || GenerationOf(*best) < GenerationOf(pod)) {
      best = &pod;
    }
  }
  return newest;
}

std::int64_t DesiredPods(const Json& job) {
  std::int64_t desired = 0;
  for (const char* role : {"worker", "dataServer", "parameterServer"}) {
    desired += IntAt(job, {"status", "roles", role, "desired"});
  }
  return desired;
}

// Processes that run and have not joined the job, by role: "1 worker".
std::vector<Cause> NotJoined(const Json& job) {
  std::vector<Cause> causes;
  for (const char* role : {"worker", "dataServer", "parameterServer"}) {
    const std::int64_t pods = IntAt(job, {"status", "roles", role, "pods"});
    const std::int64_t ready = IntAt(job, {"status", "roles", role, "ready"});
    if (ready < pods) {
      causes.push_back({std::to_string(ready) + " of " + std::to_string(pods) + " pods of role " +
                        role + " have joined the job"});
    }
  }
  return causes;
}

std::string AdviseOnJoining(const Observed& observed) {
  const std::string since = StringAt(observed.lease, {"spec", "acquireTime"});
  if (!since.empty() && SecondsSince(since, observed.now) < kJoinSeconds) {
    return "wait: another operator leads for " + SinceText(since, observed) +
           ", and processes join it within a minute";
  }
  return "see what they wait for: kubectl adamant logs " + NameOf(observed) +
         NamespaceFlag(observed) +
         "; pods must reach the operators at port 7070, also where network policies apply";
}

// "worker-0 (pod mnist-worker-0-1 on node1)"
std::string Naming(const std::string& slot, const Json& pod) {
  const std::string node = StringAt(pod, {"spec", "nodeName"});
  return slot + " (pod " + kube::KeyOf(pod).name + (node.empty() ? "" : " on " + node) + ") ";
}

// Nodes whose loss would cost several copies at once.
std::vector<Cause> SharedNodes(const Observed& observed) {
  if (IntAt(observed.job, {"spec", "distribution", "parameterServers", "copies"}) < 2) {
    return {};
  }
  std::map<std::string, std::vector<std::string>> servers;
  for (const auto& [slot, pod] : NewestPods(observed)) {
    const std::string node = StringAt(*pod, {"spec", "nodeName"});
    if (slot.starts_with("parameter-server-") && !node.empty() && !HasEnded(*pod)) {
      servers[node].push_back(slot);
    }
  }
  std::vector<Cause> causes;
  for (const auto& [node, slots] : servers) {
    if (slots.size() > 1) {
      causes.push_back({std::to_string(slots.size()) + " parameter servers share node " + node +
                        ", from " + slots.front() + " to " + slots.back()});
    }
  }
  return causes;
}

// What keeps the processes from running.
std::vector<Cause> Obstacles(const Observed& observed, Advice& advice) {
  std::vector<Cause> causes;
  const auto newest = NewestPods(observed);
  std::size_t untold = 0;
  for (const auto& [slot, pod] : newest) {
    auto cause = DiagnosePod(*pod, observed, advice);
    if (cause && causes.size() == kMostPods) {
      ++untold;
    } else if (cause) {
      cause->text = Naming(slot, *pod) + cause->text;
      causes.push_back(*std::move(cause));
    }
  }
  if (untold > 0) {
    causes.push_back({"and " + std::to_string(untold) + " more pods do not run"});
  }
  const std::int64_t processes = std::ranges::count_if(
      newest, [](const auto& entry) { return !entry.first.starts_with("export-"); });
  const std::int64_t missing = DesiredPods(observed.job) - processes;
  std::vector<Cause> refused = DiagnoseRefusals(observed, missing > 0, advice);
  if (missing > 0) {
    causes.push_back(
        {std::to_string(missing) + (missing == 1 ? " pod is" : " pods are") + " not made yet",
         std::move(refused)});
  } else if (!refused.empty()) {
    causes.push_back({"its operator cannot do what it should", std::move(refused)});
  }
  if (causes.empty()) {
    causes = NotJoined(observed.job);
    if (!causes.empty()) {
      advice.push_back(AdviseOnJoining(observed));
    }
  }
  return causes;
}

Explanation Unseen(const Observed& observed) {
  const std::string created = StringAt(observed.job, {"metadata", "creationTimestamp"});
  Explanation found{.cause = {NameOf(observed) + " waits, for " + SinceText(created, observed),
                              {Cause{"no operator has looked at it yet"}}},
                    .advice = {}};
  std::string trouble = LeaderTrouble(observed.job, observed.lease, observed.now);
  if (!trouble.empty() || SecondsSince(created, observed.now) > kOperatorSeconds) {
    found.advice.push_back(SeeOperators(observed));
  }
  if (!trouble.empty()) {
    found.cause.because.front().because.push_back({std::move(trouble)});
  }
  return found;
}

Explanation Refused(const Observed& observed) {
  Explanation found{
      .cause = {NameOf(observed) + " is refused"},
      .advice = {"delete it, correct these fields in its manifest and apply that; `adamant "
                 "validate` finds them before"}};
  found.cause.because.push_back(
      Cause{"its spec is not valid", Lines(MessageOf(observed.job, "Valid"))});
  return found;
}

Explanation Suspended(const Observed& observed) {
  const std::string name = NameOf(observed);
  const std::string queue =
      StringAt(observed.job, {"metadata", "labels", "kueue.x-k8s.io/queue-name"});
  Explanation found{.cause = {name + " is suspended"}, .advice = {}};
  if (!queue.empty()) {
    found.cause.because.push_back({"the queue " + queue + " has not admitted it"});
    found.advice.push_back("see what the queue waits for: kubectl describe localqueue " + queue +
                           NamespaceFlag(observed));
    return found;
  }
  found.cause.because = Lines(MessageOf(observed.job, "Suspended"));
  found.advice.push_back("let it go on: kubectl patch trainingjob " + name +
                         NamespaceFlag(observed) +
                         " --type=merge -p '{\"spec\":{\"runPolicy\":{\"suspend\":false}}}'");
  return found;
}

Explanation Failed(const Observed& observed) {
  const std::string name = NameOf(observed);
  Explanation found{
      .cause = {name + " failed, " +
                SinceText(StringAt(observed.job, {"status", "completionTime"}), observed) + " ago"},
      .advice = {}};
  Cause why{StringAt(observed.job, {"status", "message"}, "the operator gave no reason")};
  why.because = Losses(observed, found.advice);
  if (why.because.empty()) {  // events are forgotten after a while, pods are not
    for (const Json& pod : observed.pods) {
      auto cause = HasFailed(pod) ? DiagnosePod(pod, observed, found.advice) : std::nullopt;
      if (cause && why.because.size() < kMostPods) {
        cause->text = Naming(SlotOf(pod), pod) + cause->text;
        why.because.push_back(*std::move(cause));
      }
    }
  }
  found.cause.because.push_back(std::move(why));
  if (ReasonOf(observed.job, "Failed") == "DeadlineExceeded") {
    found.advice.emplace_back("raise the deadline that its message names, or take it out");
  }
  found.advice.push_back("once that is put right, start it anew: kubectl delete trainingjob " +
                         name + NamespaceFlag(observed) +
                         " (its claims, with the checkpoints on them, go with it), and apply its "
                         "manifest again; or leave it, and apply the manifest under another "
                         "metadata.name");
  return found;
}

Explanation Succeeded(const Observed& observed) {
  const std::string name = NameOf(observed);
  const std::int64_t restarts = IntAt(observed.job, {"status", "restarts"});
  Explanation found{.cause = {name + " succeeded"}, .advice = {}};
  if (restarts > 0) {
    found.cause.text +=
        " after " + std::to_string(restarts) + (restarts == 1 ? " restart" : " restarts");
    Advice unused;  // nothing needs to be done
    found.cause.because = Losses(observed, unused);
  }
  // As that an earlier epoch was better.
  if (const std::string message = StringAt(observed.job, {"status", "message"}); !message.empty()) {
    found.cause.text += "; " + message;
  }
  found.advice.push_back("bring its model here: kubectl adamant export " + name +
                         NamespaceFlag(observed));
  return found;
}

Explanation Deleting(const Observed& observed) {
  const std::string since = StringAt(observed.job, {"metadata", "deletionTimestamp"});
  Explanation found{
      .cause = {NameOf(observed) + " is being deleted, for " + SinceText(since, observed)},
      .advice = {}};
  for (const Json& finalizer : ListAt(observed.job, {"metadata", "finalizers"})) {
    found.cause.because.push_back({"its finalizer " + finalizer.dump() + " is not done"});
  }
  for (Cause& cause : Obstacles(observed, found.advice)) {
    found.cause.because.push_back(std::move(cause));
  }
  return found;
}

Explanation Active(const Observed& observed) {
  const Json& job = observed.job;
  const std::string phase = PhaseOf(job);
  const std::string message = StringAt(job, {"status", "message"});
  Explanation found;
  std::string leaderless = LeaderTrouble(job, observed.lease, observed.now);
  if (!leaderless.empty()) {
    found.advice.push_back(SeeOperators(observed));
  }
  std::vector<Cause> obstacles = Obstacles(observed, found.advice);
  const bool runs = phase == "Running" || phase == "Evaluating";
  if (runs) {
    found.cause.text = NameOf(observed) + " runs: epoch " +
                       std::to_string(IntAt(job, {"status", "epoch"})) + " of " +
                       std::to_string(IntAt(job, {"status", "epochs"})) + ", " +
                       std::to_string(IntAt(job, {"status", "examplesPerSecond"})) + " examples/s";
    if (!obstacles.empty()) {
      found.cause.because.push_back({"some of its processes do not run", std::move(obstacles)});
    }
    for (Cause& shared : SharedNodes(observed)) {
      found.cause.because.push_back(std::move(shared));
    }
  } else {
    found.cause.text = NameOf(observed) + " waits in phase " + phase;
    found.cause.because = std::move(obstacles);
  }
  if (!leaderless.empty()) {
    found.cause.because.insert(found.cause.because.begin(),
                               {"this is as it was last told: " + std::move(leaderless)});
  }
  if (!message.empty() && !MessageOf(job, "WriteFailure").starts_with(message)) {
    found.cause.because.push_back({message});
  }
  if (Holds(job, "Diverged", "True")) {
    found.cause.because.push_back(
        {"it is at attempt " + std::to_string(IntAt(job, {"status", "attempt"})) + " of training",
         Lines(MessageOf(job, "Diverged"))});
  }
  for (const Json* alarm : EventsOfJob(observed, {"Alarm"})) {
    if (SecondsSince(TimeOf(*alarm), observed.now) < kNoProgressSeconds) {
      found.cause.because.push_back({StringAt(*alarm, {"message"})});
    }
  }
  std::vector<Cause> losses = Losses(observed, found.advice);
  if (!losses.empty()) {
    found.cause.because.push_back({"processes were lost and started again", std::move(losses)});
  }
  return found;
}

Explanation ExplainJob(const Observed& observed) {
  const Json& job = observed.job;
  const std::string phase = PhaseOf(job);
  if (!StringAt(job, {"metadata", "deletionTimestamp"}).empty()) {
    return Deleting(observed);
  }
  if (phase.empty()) {
    return Unseen(observed);
  }
  if (phase == "Failed" && Holds(job, "Valid", "False")) {
    return Refused(observed);
  }
  if (phase == "Suspended") {
    return Suspended(observed);
  }
  return phase == "Failed"      ? Failed(observed)
         : phase == "Succeeded" ? Succeeded(observed)
                                : Active(observed);
}

void Append(const Cause& cause, std::size_t depth, std::string& text) {
  text += std::string(2 * depth, ' ') + (depth > 0 ? "because " : "") + cause.text + "\n";
  for (const Cause& deeper : cause.because) {
    Append(deeper, depth + 1, text);
  }
}

nlohmann::ordered_json CauseJson(const Cause& cause) {
  nlohmann::ordered_json json = {{"text", cause.text},
                                 {"because", nlohmann::ordered_json::array()}};
  for (const Cause& deeper : cause.because) {
    json["because"].push_back(CauseJson(deeper));
  }
  return json;
}

}  // namespace

Explanation Explain(const Observed& observed) {
  Explanation found = ExplainJob(observed);
  const Json& job = observed.job;
  if (const std::string restarts = RestartsText(job); !restarts.empty()) {
    found.cause.because.push_back({"its processes were started again in all: " + restarts});
  }
  const bool refused_change = PhaseOf(job) != "Failed" && Holds(job, "Valid", "False");
  if (refused_change) {
    found.cause.because.push_back(
        {"its last change is refused, it goes on as it was", Lines(MessageOf(job, "Valid"))});
    found.advice.emplace_back("correct these fields and apply the manifest again");
  }
  Advice once;
  for (std::string& each : found.advice) {
    if (std::ranges::find(once, each) == once.end()) {
      once.push_back(std::move(each));
    }
  }
  found.advice = std::move(once);
  return found;
}

std::string ExplanationText(const Explanation& explanation) {
  std::string text;
  Append(explanation.cause, 0, text);
  for (const std::string& advice : explanation.advice) {
    text += (&advice == &explanation.advice.front() ? "\nwhat to do:\n" : "") + ("  - " + advice) +
            "\n";
  }
  return text;
}

std::string ExplanationJson(const Explanation& explanation) {
  nlohmann::ordered_json json = CauseJson(explanation.cause);
  json["advice"] = explanation.advice;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace adamant::kubectl
