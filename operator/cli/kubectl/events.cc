#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/cluster/outage.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

using kube::StringAt;

constexpr std::chrono::seconds kInterval{2};  // between looks whether the job is over
constexpr std::chrono::seconds kLast{2};      // in which what has ended it is told
constexpr std::chrono::minutes kSilence{10};  // after which a watch is begun again

constexpr char kExamples[] = R"(Examples:
  kubectl adamant events mnist            what happened to the job, its pods and claims, in order
  kubectl adamant events mnist --watch    and what happens from now on, until it is over

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

// Prints events, each as often as it happens.
class EventPrinter {
 public:
  EventPrinter(Session& session, const Json& job) : session_(session), job_(job) {}

  void Tell(const Json& event) {
    const std::string version = kube::ResourceVersionOf(event);
    if (IsEventOf(event, job_) && std::exchange(told_[kube::UidOf(event)], version) != version) {
      session_.print(Line(event));
    }
  }

  /// Those that there are; returns from where to watch for more.
  absl::StatusOr<std::string> TellAll() {
    ADAMANT_ASSIGN_OR_RETURN(const Events events, ReadEvents(session_, job_));
    std::ranges::for_each(events.events, [this](const Json& event) { Tell(event); });
    return events.version;
  }

 private:
  Session& session_;
  const Json& job_;
  std::map<std::string, std::string> told_;  // by UID: as it was told last
};

// Until the session is cancelled. A watch that ends goes on where it was; where the API has
// forgotten that place, with what was not told.
absl::Status Follow(Session& session, EventPrinter& teller, std::string version) {
  Outage outage(session);
  outage.End();  // it has told of events
  while (!session.cancellation.cancelled()) {
    absl::Status status = session.client.Watch(
        kube::kEvents,
        {.ns = session.ns},
        {.resource_version = version, .idle = kSilence},
        [&](kube::WatchEventType type, Json& event) {
          outage.End();
          version = kube::ResourceVersionOf(event);
          if (type == kube::WatchEventType::kAdded || type == kube::WatchEventType::kModified) {
            teller.Tell(event);
          }
          return true;
        });
    if (absl::IsOutOfRange(status)) {
      absl::StatusOr<std::string> now = teller.TellAll();
      version = now.value_or(version);
      status = now.status();
    }
    if (status.ok() || absl::IsDeadlineExceeded(status)) {
      outage.End();
    } else {
      ADAMANT_RETURN_IF_ERROR(outage.Wait(status));
    }
  }
  return absl::CancelledError("stopped");
}

// Returns true when the job is over or deleted; false when nobody can tell any more.
bool AwaitEnd(const Session& session, const Json& job) {
  Outage outage(session);
  outage.End();  // it has told of the job
  while (true) {
    const absl::StatusOr<Json> now = ReadAgain(session, job);
    if (absl::IsNotFound(now.status()) || (now.ok() && IsOver(PhaseOf(*now)))) {
      return true;
    }
    if (!now.ok()) {
      if (!outage.Wait(now.status()).ok()) {
        return false;
      }
      continue;
    }
    outage.End();
    if (!session.sleeper.Sleep(kInterval, session.cancellation)) {
      return false;
    }
  }
}

// Until the job is over or deleted.
absl::Status FollowToEnd(Session& session,
                         const Json& job,
                         EventPrinter& teller,
                         std::string version) {
  const kube::Cancellation ended;
  const auto stopped = session.cancellation.OnCancel([ended] { ended.Cancel(); });
  Session until_end = session;
  until_end.client = session.client.With(ended);
  until_end.cancellation = ended;
  const std::jthread waiter([&] {
    if (AwaitEnd(until_end, job)) {
      until_end.sleeper.Sleep(kLast, ended);
      ended.Cancel();
    }
  });
  const absl::Status status = Follow(until_end, teller, std::move(version));
  const bool over = ended.cancelled() && !session.cancellation.cancelled();
  ended.Cancel();
  return over ? teller.TellAll().status() : status;
}

}  // namespace

absl::StatusOr<int> ShowEvents(Session& session, const EventsFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  EventPrinter teller(session, job);
  ADAMANT_ASSIGN_OR_RETURN(std::string version, teller.TellAll());
  if (flags.watch) {
    ADAMANT_RETURN_IF_ERROR(FollowToEnd(session, job, teller, std::move(version)));
  }
  return cli::kOk;
}

void AddEvents(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("events", "Tell what happened to a job and its pods");
  const auto flags = std::make_shared<EventsFlags>();
  AddTarget(command, flags->target);
  command.add_flag("-w,--watch", flags->watch, "And what happens until the job is over");
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return ShowEvents(session, *flags); });
  });
}

}  // namespace adamant::kubectl
