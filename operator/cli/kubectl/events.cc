#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/cli/kubectl/job_objects.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

using kube::StringAt;

constexpr std::chrono::seconds kPause{1};  // before a watch that broke is begun again

constexpr char kExamples[] = R"(Examples:
  kubectl adamant events mnist            what happened to the job, its pods and claims, in order
  kubectl adamant events mnist --watch    and what happens from now on

Kubernetes forgets events after an hour, unless the cluster is set up otherwise.)";

// "2026-11-21T13:24:43Z  Warning  mnist-worker-0-1  BackOff: …  (5 times)"
std::string Line(const Json& event) {
  std::string line = cli::Text("%-20.19s  %-7s  %s  ",
                               TimeOf(event).c_str(),
                               StringAt(event, {"type"}).c_str(),
                               StringAt(event, {"involvedObject", "name"}).c_str()) +
                     StringAt(event, {"reason"}) + ": " + StringAt(event, {"message"});
  std::ranges::replace(line, '\n', ' ');
  const std::int64_t count = CountOf(event);
  return line + (count > 1 ? "  (" + std::to_string(count) + " times)\n" : "\n");
}

// Until the user stops it. A watch that ends goes on where it was; where the API has forgotten that
// place, from now.
absl::Status Follow(Session& session, const Json& job, std::string version) {
  while (!session.cancellation.cancelled()) {
    const absl::Status status =
        session.client.Watch(kube::kEvents,
                             {.ns = session.ns},
                             {.resource_version = version, .idle = std::chrono::minutes(10)},
                             [&](kube::WatchEventType type, Json& event) {
                               version = kube::ResourceVersionOf(event);
                               const bool news = type == kube::WatchEventType::kAdded ||
                                                 type == kube::WatchEventType::kModified;
                               if (news && IsEventOf(event, job)) {
                                 session.print(Line(event));
                               }
                               return true;
                             });
    if (absl::IsOutOfRange(status)) {
      ADAMANT_ASSIGN_OR_RETURN(const Events events, ReadEvents(session, job));
      version = events.version;
    } else if (absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) {
      return status;
    } else if (!status.ok()) {
      session.sleeper.Sleep(kPause, session.cancellation);
    }
  }
  return absl::CancelledError("stopped");
}

}  // namespace

absl::StatusOr<int> ShowEvents(Session& session, const EventsFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  ADAMANT_ASSIGN_OR_RETURN(const Events events, ReadEvents(session, job));
  for (const Json& event : events.events) {
    session.print(Line(event));
  }
  if (flags.watch) {
    ADAMANT_RETURN_IF_ERROR(Follow(session, job, events.version));
  }
  return cli::kOk;
}

void AddEvents(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("events", "Tell what happened to a job and its pods");
  const auto flags = std::make_shared<EventsFlags>();
  AddTarget(command, flags->target);
  command.add_flag("-w,--watch", flags->watch, "And what happens from now on");
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return ShowEvents(session, *flags); });
  });
}

}  // namespace adamant::kubectl
