#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/kubectl/cluster/outage.h"
#include "operator/cli/kubectl/cluster/pod_log.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/yaml/problems.h"

namespace adamant::kubectl {
namespace {

constexpr std::chrono::seconds kInterval{2};   // between looks for new pods
constexpr std::chrono::minutes kSilence{10};   // after which a log is asked for again
constexpr std::chrono::minutes kWholeLog{10};  // for a log that is not followed to arrive

constexpr char kExamples[] = R"(Examples:
  kubectl adamant logs mnist                    of all processes
  kubectl adamant logs mnist worker-0 -f        of one, and what it writes from now on
  kubectl adamant logs mnist worker --tail 20   of a role
  kubectl adamant logs mnist worker-0 --previous
      Of the start before the newest, as long as its pod is there: the job keeps the
      newest pod of each process that has ended.)";

bool IsWanted(const std::string& slot, const std::vector<std::string>& of) {
  return of.empty() || std::ranges::any_of(of, [&slot](const std::string& wanted) {
           return slot == wanted || slot.substr(0, slot.rfind('-')) == wanted;
         });
}

// By slot, of the newest pod or of the one before; of the wanted ones.
absl::StatusOr<std::vector<Json>> Choose(std::vector<Json> pods, const LogsFlags& flags) {
  std::map<std::string, std::vector<Json>> by_slot;
  std::vector<std::string> names = {"worker", "data-server", "parameter-server"};
  for (Json& pod : pods) {
    if (const std::string slot = SlotOf(pod); !slot.empty()) {
      by_slot[slot].push_back(std::move(pod));
      names.push_back(slot);
    }
  }
  std::vector<Json> chosen;
  for (auto& [slot, starts] : by_slot) {
    std::ranges::sort(starts, std::ranges::greater(), GenerationOf);
    const std::size_t index = flags.previous ? 1 : 0;
    if (IsWanted(slot, flags.of) && starts.size() > index) {
      chosen.push_back(std::move(starts[index]));
    }
  }
  if (chosen.empty() && flags.previous) {
    return absl::NotFoundError("no pod of an earlier start is there any more");
  }
  if (chosen.empty() && !by_slot.empty()) {
    const std::string hint = job::DidYouMean(flags.of.front(), names);
    return absl::NotFoundError("there is no pod of " + job::Quote(flags.of.front()) +
                               (hint.empty() ? "; `status` lists them" : "; " + hint));
  }
  return chosen;
}

std::string Prefix(const Json& pod) {
  return "[" + SlotOf(pod) + "." + std::to_string(GenerationOf(pod)) + "] ";
}

absl::Status PrintOnce(Session& session, const Json& pod, const LogsFlags& flags, bool prefixed) {
  const std::string prefix = prefixed ? Prefix(pod) : "";
  return ReadLog(session,
                 kube::KeyOf(pod),
                 {.tail = flags.tail, .idle = kWholeLog},
                 [&](std::string_view line) {
                   session.print(prefix + std::string(line) + "\n");
                   return true;
                 });
}

// Follows the logs of many pods, each by a thread, new pods included.
class Follower {
 public:
  Follower(Session& session, const LogsFlags& flags) : session_(session), flags_(flags) {}

  // Returns when the job is over or deleted, and all its logs are at their ends.
  absl::Status Run() {
    ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session_, flags_.target.job));
    Outage outage(session_);
    while (true) {
      const absl::StatusOr<bool> at_end = Look(job);
      if (!at_end.ok()) {
        ADAMANT_RETURN_IF_ERROR(outage.Wait(at_end.status()));
        continue;
      }
      outage.End();
      if (*at_end) {
        threads_.clear();
        return absl::OkStatus();
      }
      if (!session_.sleeper.Sleep(kInterval, session_.cancellation)) {
        return absl::CancelledError("stopped");
      }
    }
  }

 private:
  // Begins to follow what is new. True when nothing more will be.
  absl::StatusOr<bool> Look(const Json& followed) {
    const absl::StatusOr<Json> job = ReadAgain(session_, followed);
    if (absl::IsNotFound(job.status())) {
      return true;
    }
    ADAMANT_RETURN_IF_ERROR(job.status());
    ADAMANT_ASSIGN_OR_RETURN(std::vector<Json> pods, ReadOwned(session_, *job, kube::kPods));
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<Json> chosen, Choose(std::move(pods), flags_));
    for (const Json& pod : chosen) {
      if (HasLog(pod) && started_.insert(kube::UidOf(pod)).second) {
        Start(pod);
      }
    }
    return IsOver(PhaseOf(*job)) && std::ranges::none_of(chosen, [](const Json& pod) {
             return HasLog(pod) && !HasEnded(pod);
           });
  }

  // A pod that has not started has no log yet.
  static bool HasLog(const Json& pod) {
    const std::string state = StateOf(pod);
    return state == "Running" || state == "Terminating" || HasEnded(pod);
  }

  void Start(const Json& pod) {
    threads_.emplace_back([this, key = kube::KeyOf(pod), prefix = Prefix(pod)] {
      const absl::Status status = FollowLog(
          session_, key, {.tail = flags_.tail, .idle = kSilence}, [&](std::string_view line) {
            session_.print(prefix + std::string(line) + "\n");
            return true;
          });
      if (!status.ok() && !absl::IsCancelled(status) && !absl::IsNotFound(status)) {
        session_.print(prefix + "(" + std::string(status.message()) + ")\n");
      }
    });
  }

  Session& session_;
  const LogsFlags& flags_;
  std::set<std::string> started_;  // UIDs
  std::vector<std::jthread> threads_;
};

}  // namespace

absl::StatusOr<int> ShowLogs(Session& session, const LogsFlags& flags) {
  if (flags.follow) {
    ADAMANT_RETURN_IF_ERROR(Follower(session, flags).Run());
    return cli::kOk;
  }
  ADAMANT_ASSIGN_OR_RETURN(const Json job, ReadJob(session, flags.target.job));
  ADAMANT_ASSIGN_OR_RETURN(std::vector<Json> pods, ReadOwned(session, job, kube::kPods));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<Json> chosen, Choose(std::move(pods), flags));
  if (chosen.empty()) {
    return absl::FailedPreconditionError(
        "the job has no pods now; `kubectl adamant explain` says why");
  }
  absl::Status status;
  for (const Json& pod : chosen) {
    status.Update(PrintOnce(session, pod, flags, chosen.size() > 1));
  }
  ADAMANT_RETURN_IF_ERROR(status);
  return cli::kOk;
}

void AddLogs(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("logs", "Print what the processes of a job have written");
  const auto flags = std::make_shared<LogsFlags>();
  AddTarget(command, flags->target);
  command.add_option("OF", flags->of, "Roles and processes: worker, worker-0, … [all]");
  command.add_flag("-f,--follow", flags->follow, "And what they write from now on");
  command.add_flag("-p,--previous", flags->previous, "Of the start before the newest")
      ->excludes("--follow");
  command.add_option("--tail", flags->tail, "So many last lines of each [all]")
      ->check(CLI::NonNegativeNumber.description(""));
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return ShowLogs(session, *flags); });
  });
}

}  // namespace adamant::kubectl
