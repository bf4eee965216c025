#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/cluster/outage.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/cluster/status_text.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/kube/api/custom_resources.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr std::chrono::seconds kInterval{2};
constexpr char kClearScreen[] = "\033[H\033[2J";

constexpr char kExamples[] = R"(Examples:
  kubectl adamant status mnist
  kubectl adamant status mnist --watch     again as it changes, until the job is over
  kubectl adamant status mnist -o json

RESTARTS of a pod are those of its process: each restart is a new pod.)";

absl::StatusOr<StatusObjects> ReadObjects(const Session& session, const Json& job) {
  StatusObjects objects;
  ADAMANT_ASSIGN_OR_RETURN(objects.job, ReadAgain(session, job));
  ADAMANT_ASSIGN_OR_RETURN(objects.pods, ReadOwned(session, objects.job, kube::kPods));
  ADAMANT_ASSIGN_OR_RETURN(objects.claims,
                           ReadOwned(session, objects.job, kube::kPersistentVolumeClaims));
  ADAMANT_ASSIGN_OR_RETURN(objects.shard_maps, ReadOwned(session, objects.job, kube::kShardMaps));
  ADAMANT_ASSIGN_OR_RETURN(objects.lease, ReadLease(session));
  objects.now = session.clock.WallNow();
  return objects;
}

}  // namespace

absl::StatusOr<int> ShowStatus(Session& session, const StatusFlags& flags) {
  const bool screen = flags.watch && !flags.json && isatty(STDOUT_FILENO) != 0;
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  Outage outage(session);
  std::string version;
  while (true) {
    const absl::StatusOr<StatusObjects> read = ReadObjects(session, job);
    if (!read.ok()) {
      ADAMANT_RETURN_IF_ERROR(outage.Wait(read.status()));
      continue;
    }
    outage.End();
    const StatusObjects& objects = *read;
    const std::string now = kube::ResourceVersionOf(objects.job);
    if (screen || now != version) {  // on a screen ages grow, too
      version = now;
      session.print((screen ? kClearScreen : "") +
                    (flags.json ? StatusJson(objects) + "\n" : StatusText(objects)));
    }
    const std::string phase = PhaseOf(objects.job);
    if (!flags.watch || IsOver(phase)) {
      return flags.watch && phase == "Failed" ? cli::kJobFailed : cli::kOk;
    }
    if (!session.sleeper.Sleep(kInterval, session.cancellation)) {
      return absl::CancelledError("stopped");
    }
  }
}

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("status", "Show how a job stands");
  const auto flags = std::make_shared<StatusFlags>();
  AddTarget(command, flags->target);
  AddOutput(command, flags->json);
  command.add_flag("-w,--watch", flags->watch, "Again as it changes, until the job is over");
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return ShowStatus(session, *flags); });
  });
}

}  // namespace adamant::kubectl
