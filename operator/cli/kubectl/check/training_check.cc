#include "operator/cli/kubectl/check/training_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/check/check_job.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/kube/api/custom_resources.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

using kube::IntAt;
using kube::StringAt;

constexpr std::chrono::milliseconds kInterval{100};

// Field of status.roles for a role as labels name it.
std::string_view FieldOf(std::string_view role) {
  return role == "parameter-server" ? "parameterServer"
         : role == "data-server"    ? "dataServer"
                                    : "worker";
}

bool AllHaveJoined(const Json& job, std::string_view role) {
  const std::int64_t desired = IntAt(job, {"status", "roles", FieldOf(role), "desired"});
  return desired > 0 && IntAt(job, {"status", "roles", FieldOf(role), "ready"}) == desired;
}

std::int64_t RestartsOf(const Json& job, std::string_view role) {
  return IntAt(job, {"status", "roles", FieldOf(role), "restarts"});
}

std::string Because(const Json& job) {
  const std::string phase = PhaseOf(job);
  const std::string message = StringAt(job, {"status", "message"});
  return "the job is " + (phase.empty() ? "not looked at by any operator" : phase) +
         (message.empty() ? "" : ": " + message);
}

}  // namespace

absl::StatusOr<TrainingCheck::Seconds> TrainingCheck::Await(const std::string& what,
                                                            const Condition& is_so) {
  const auto start = session_.clock.Now();
  while (true) {
    ADAMANT_ASSIGN_OR_RETURN(const Json job, session_.client.Get(kube::kTrainingJobs, job_));
    ADAMANT_ASSIGN_OR_RETURN(const bool so, is_so(job));
    const auto passed = session_.clock.Now() - start;
    if (so) {
      return passed;
    }
    if (IsOver(PhaseOf(job)) || session_.clock.Now() > deadline_) {
      return absl::AbortedError(cli::Text("after %.0f s %s is still waited for; ",
                                          Seconds(passed).count(),
                                          what.c_str()) +
                                Because(job));
    }
    if (!session_.sleeper.Sleep(kInterval, session_.cancellation)) {
      return absl::CancelledError("stopped");
    }
  }
}

absl::StatusOr<TrainingCheck::Seconds> TrainingCheck::AwaitTraining() {
  return Await("training", [](const Json& job) {
    return PhaseOf(job) == "Running" && AllHaveJoined(job, "worker") &&
           AllHaveJoined(job, "parameter-server") && AllHaveJoined(job, "data-server");
  });
}

absl::StatusOr<Json> TrainingCheck::PodOf(const Json& job, const std::string& slot) {
  ADAMANT_ASSIGN_OR_RETURN(std::vector<Json> pods, ReadOwned(session_, job, kube::kPods));
  std::erase_if(pods, [&slot](const Json& pod) { return SlotOf(pod) != slot || HasEnded(pod); });
  if (pods.empty()) {
    return absl::NotFoundError("there is no pod of " + slot);
  }
  return *std::ranges::max_element(pods, {}, GenerationOf);
}

absl::StatusOr<TrainingCheck::Replacement> TrainingCheck::LosePod(std::string_view role) {
  const std::string slot = std::string(role) + "-0";
  ADAMANT_ASSIGN_OR_RETURN(const Json before, session_.client.Get(kube::kTrainingJobs, job_));
  ADAMANT_ASSIGN_OR_RETURN(const Json lost, PodOf(before, slot));
  ADAMANT_RETURN_IF_ERROR(
      session_.client.Delete(kube::kPods, kube::KeyOf(lost), {.uid = kube::UidOf(lost)}));
  ADAMANT_ASSIGN_OR_RETURN(
      const Seconds made,
      Await("another pod of " + slot, [&](const Json& job) -> absl::StatusOr<bool> {
        const auto pod = PodOf(job, slot);
        return pod.ok()                         ? GenerationOf(*pod) > GenerationOf(lost)
               : absl::IsNotFound(pod.status()) ? absl::StatusOr<bool>(false)
                                                : pod.status();
      }));
  ADAMANT_ASSIGN_OR_RETURN(
      const Seconds joined, Await(slot + " to join the job again", [&](const Json& job) {
        return RestartsOf(job, role) > RestartsOf(before, role) && AllHaveJoined(job, role);
      }));
  return Replacement{.made = made, .joined = made + joined};
}

absl::StatusOr<double> TrainingCheck::Finish() {
  ADAMANT_RETURN_IF_ERROR(
      session_.client.Patch(kube::kTrainingJobs, job_, kube::PatchType::kMerge, OpenEpochIsLast())
          .status());
  double accuracy = 0;
  ADAMANT_RETURN_IF_ERROR(Await("the end of the job", [&accuracy](const Json& job) {
                            const Json* found = kube::Find(job, {"status", "accuracy"});
                            accuracy =
                                found != nullptr && found->is_number() ? found->get<double>() : 0;
                            return PhaseOf(job) == "Succeeded";
                          }).status());
  if (accuracy < kLearnedAccuracy) {
    return absl::AbortedError(cli::Text(
        "the job has succeeded, but its model classifies only %.1f %% right; expected are %.0f %%",
        100 * accuracy,
        100 * kLearnedAccuracy));
  }
  return accuracy;
}

}  // namespace adamant::kubectl
