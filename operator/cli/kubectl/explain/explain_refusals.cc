#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/explain/explain.h"

namespace adamant::kubectl {
namespace {

using kube::Find;
using kube::StringAt;
using Advice = std::vector<std::string>;

constexpr char kFindWebhook[] =
    "find the admission webhook that holds the request up, and see whether who answers for it "
    "runs: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations; the operator "
    "tries again by itself";

// What to do about a refusal of the API. What is the most usual comes first.
std::string AdviceOnRefusal(std::string_view message) {
  const auto holds = [message](std::string_view part) {
    return message.find(part) != std::string_view::npos;
  };
  if (holds("must specify") || holds("maximum ") || holds("minimum ")) {
    return "ask for what the quota or LimitRange of the namespace demands: resources in "
           "spec.pods.ROLE.spec of the job, sizes in storage";
  }
  if (holds("quota")) {
    return "free what the quota counts, or have it raised";
  }
  if (holds("PriorityClass")) {
    return "make the PriorityClass that spec.pods.ROLE.spec names (kubectl get priorityclass), or "
           "correct its name";
  }
  if (holds("exists and is of no TrainingJob") || holds("is of the TrainingJob")) {
    return "delete what has the name, or give the job another one";
  }
  if (holds("webhook")) {
    return "ask who runs the webhook that the message names";
  }
  if (holds("PodSecurity")) {
    return "correct what spec.pods.ROLE.spec asks for beyond what the namespace allows";
  }
  if (holds("cannot find the claim") || holds("no claim")) {
    return "make the claim that the job names, or give the job one that is there";
  }
  if (holds("cannot write the model")) {
    return "see that the claim's volume has room and can be written by the pod's user, 65532, or "
           "its "
           "group; the operator tries again by itself";
  }
  return "put right what the message says; the operator tries again by itself";
}

// What the operator tells of it.
std::vector<Cause> RefusedWrites(const Observed& observed, Advice& advice) {
  const Json* condition = ConditionOf(observed.job, "WriteFailure");
  if (condition == nullptr || StringAt(*condition, {"status"}) != "True") {
    return {};
  }
  const std::string message = StringAt(*condition, {"message"});
  const bool unanswered = StringAt(*condition, {"reason"}).starts_with("Unanswered");
  advice.push_back(unanswered ? kFindWebhook : AdviceOnRefusal(message));
  return Lines(message);
}

// Quotas that are used up: they keep the operator from making pods and claims.
std::vector<Cause> UsedUpQuotas(const Observed& observed, Advice& advice) {
  std::vector<Cause> causes;
  for (const Json& quota : observed.quotas) {
    const Json* hard = Find(quota, {"status", "hard"});
    if (hard == nullptr || !hard->is_object()) {
      continue;
    }
    for (const auto& [resource, limit] : hard->items()) {
      const std::string used = StringAt(quota, {"status", "used", resource});
      if (limit.is_string() && !used.empty() && used == limit.get<std::string>()) {
        std::string text = "the quota " + kube::KeyOf(quota).name;
        text.append(" of the namespace is used up: ").append(resource);
        text.append(" ").append(used).append(" of ").append(used);
        causes.push_back({std::move(text)});
      }
    }
  }
  if (!causes.empty()) {
    advice.emplace_back("free what the quota counts, or have it raised");
  }
  return causes;
}

}  // namespace

std::string NamespaceFlag(const Observed& observed) {
  return " -n " + kube::KeyOf(observed.job).ns;
}

std::vector<Cause> Lines(std::string_view text) {
  std::vector<Cause> causes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      causes.push_back({std::string(text.substr(0, end))});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return causes;
}

std::vector<Cause> DiagnoseRefusals(const Observed& observed,
                                    bool pods_are_missing,
                                    std::vector<std::string>& advice) {
  std::vector<Cause> causes = RefusedWrites(observed, advice);
  return causes.empty() && pods_are_missing ? UsedUpQuotas(observed, advice) : causes;
}

}  // namespace adamant::kubectl
