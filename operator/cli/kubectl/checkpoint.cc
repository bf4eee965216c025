#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/kube/api/custom_resources.h"
#include "operator/kube_client/base/time.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

using kube::StringAt;

constexpr std::chrono::milliseconds kInterval{500};

constexpr char kExamples[] = R"(Examples:
  kubectl adamant checkpoint mnist
      Returns when a checkpoint is stored that has all that was acknowledged before.

The job goes on meanwhile. It starts again from its newest checkpoint only where all copies of
a bucket are lost.)";

absl::Status CheckTrains(const Json& job) {
  const std::string phase = PhaseOf(job);
  if (!phase.empty() && phase != "Suspended" && !IsOver(phase)) {
    return absl::OkStatus();
  }
  const std::int64_t newest = kube::IntAt(job, {"status", "checkpoint", "snapshot"});
  return absl::FailedPreconditionError(
      kube::KeyOf(job).name + " is " + (phase.empty() ? "not begun" : phase) +
      ", so there is nothing to be checkpointed; " +
      (newest == 0 ? "it has none" : "its newest one is " + std::to_string(newest)));
}

// Whether there is who would take it. Operators elsewhere than docs/install.md puts them are known
// by what they report.
absl::Status CheckLed(const Session& session, const Json& job) {
  ADAMANT_ASSIGN_OR_RETURN(const Json lease, ReadLease(session));
  const kube::WallTime now = session.clock.WallNow();
  const std::string trouble = LeaseTrouble(lease, now);
  const bool elsewhere = lease == Json::object() &&
                         !StringAt(job, {"status", "lastReportTime"}).empty() &&
                         LeaderTrouble(job, Json(), now).empty();
  return trouble.empty() || elsewhere
             ? absl::OkStatus()
             : absl::FailedPreconditionError(
                   trouble +
                   ", so nobody takes a checkpoint; see what the operators do: kubectl -n " +
                   OperatorsNamespace(lease) + " get pods");
}

}  // namespace

absl::StatusOr<int> TakeCheckpoint(Session& session, const CheckpointFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  ADAMANT_RETURN_IF_ERROR(CheckTrains(job));
  ADAMANT_RETURN_IF_ERROR(CheckLed(session, job));
  const std::string request = kube::FormatMicroTime(session.clock.WallNow());
  const Json patch = {
      {"metadata",
       {{"uid", kube::UidOf(job)}, {"annotations", {{kube::kCheckpointAnnotation, request}}}}}};
  ADAMANT_RETURN_IF_ERROR(
      session.client.Patch(kube::kTrainingJobs, kube::KeyOf(job), kube::PatchType::kMerge, patch)
          .status());
  const auto deadline = session.clock.Now() + std::chrono::seconds(flags.timeout_seconds);
  while (session.clock.Now() < deadline) {
    ADAMANT_ASSIGN_OR_RETURN(const Json now, ReadJob(session, flags.target.job));
    const Json* done = kube::Find(now, {"status", "checkpoint"});
    if (done != nullptr && StringAt(*done, {"request"}) == request) {
      session.print("checkpoint " + std::to_string(kube::IntAt(*done, {"snapshot"})) +
                    " of epoch " + std::to_string(kube::IntAt(*done, {"epoch"})) + "\n");
      return cli::kOk;
    }
    ADAMANT_RETURN_IF_ERROR(CheckTrains(now));
    if (!session.sleeper.Sleep(kInterval, session.cancellation)) {
      return absl::CancelledError("stopped");
    }
  }
  return absl::AbortedError(
      "no checkpoint is complete after " + std::to_string(flags.timeout_seconds) +
      " s; `kubectl adamant explain " + flags.target.job + "` says what is in the way");
}

void AddCheckpoint(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("checkpoint", "Have a checkpoint taken now");
  const auto flags = std::make_shared<CheckpointFlags>();
  AddTarget(command, flags->target);
  command.add_option("--timeout", flags->timeout_seconds, "Seconds to wait for it [120]")
      ->check(CLI::PositiveNumber.description(""));
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(
        flags->target, [&flags](Session& session) { return TakeCheckpoint(session, *flags); });
  });
}

}  // namespace adamant::kubectl
