#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/check/check_job.h"
#include "operator/cli/kubectl/check/training_check.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/kube/api/custom_resources.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr std::array<const char*, 3> kRoles = {"worker", "data-server", "parameter-server"};

constexpr char kExamples[] = R"(Examples:
  kubectl adamant check -n training        in this namespace
  kubectl adamant check --keep             and leaves the job, to look at it

Trains a small job, deletes a pod of each role while it trains, tells how soon each was
there again, has the job succeed, and deletes it. Needs the right to create jobs and to
delete pods, as the role edit has, and storage for the job's volumes.)";

std::string NewName() { return cli::Text("adamant-check-%08x", std::random_device()()); }

// A job that exists as long as this does, or longer if it is kept.
class TemporaryJob {
 public:
  TemporaryJob(const Session& session, kube::ObjectKey key, bool keep)
      : client_(session.client.With(kube::Cancellation())),
        print_(session.print),
        key_(std::move(key)),
        keep_(keep) {}
  ~TemporaryJob() { End(); }
  TemporaryJob(const TemporaryJob&) = delete;
  TemporaryJob& operator=(const TemporaryJob&) = delete;

 private:
  void End() const {
    if (keep_) {
      return print_("the job stays; delete it with " + Deletion() + "\n");
    }
    const absl::Status status = client_.Delete(kube::kTrainingJobs, key_);
    if (status.ok() || absl::IsNotFound(status)) {
      return print_("job deleted\n");
    }
    std::fprintf(
        stderr,
        "adamant: the job stays behind: %s; it ends within half an hour, delete it with %s\n",
        std::string(status.message()).c_str(),
        Deletion().c_str());
  }

  [[nodiscard]] std::string Deletion() const {
    return "kubectl delete trainingjob -n " + key_.ns + " " + key_.name;
  }

  const kube::Client client_;  // also after the user has stopped the rest
  const std::function<void(const std::string&)> print_;
  const kube::ObjectKey key_;
  const bool keep_;
};

// Where it fails by what the API says, there is no job.
bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status) ||
         absl::IsInvalidArgument(status) || absl::IsUnauthenticated(status);
}

absl::Status RunCheck(Session& session, TrainingCheck& check) {
  ADAMANT_ASSIGN_OR_RETURN(const TrainingCheck::Seconds trains, check.AwaitTraining());
  session.print(cli::Text("trains after %.1f s\n", trains.count()));
  for (const char* role : kRoles) {
    ADAMANT_ASSIGN_OR_RETURN(const TrainingCheck::Replacement replacement, check.LosePod(role));
    session.print(cli::Text("%s-0 deleted: another pod after %.1f s, joined after %.1f s\n",
                            role,
                            replacement.made.count(),
                            replacement.joined.count()));
  }
  ADAMANT_ASSIGN_OR_RETURN(const double accuracy, check.Finish());
  session.print(cli::Text("succeeded, top-1 %.1f %%\n", 100 * accuracy));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> CheckCluster(Session& session, const CheckFlags& flags) {
  const kube::ObjectKey key{session.ns, NewName()};
  const absl::Status created = session.client.Create(kube::kTrainingJobs, CheckJob(key)).status();
  if (IsRefusal(created)) {
    return created;
  }
  const TemporaryJob temporary(session, key, flags.keep);
  ADAMANT_RETURN_IF_ERROR(created);
  session.print("job " + key.name + " in namespace " + key.ns + "\n");
  TrainingCheck check(session, key, std::chrono::seconds(flags.timeout_seconds));
  const absl::Status status = RunCheck(session, check);
  if (!absl::IsAborted(status)) {
    ADAMANT_RETURN_IF_ERROR(status);
    return cli::kOk;
  }
  session.print(std::string(status.message()) + "\n");
  const Target target{.config = {}, .ns = key.ns, .job = key.name};
  ADAMANT_RETURN_IF_ERROR(ShowExplanation(session, {.target = target}).status());
  return cli::kJobFailed;
}

void AddCheck(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("check", "Whether jobs train here, and survive the loss of a pod");
  const auto flags = std::make_shared<CheckFlags>();
  AddCluster(command, flags->target);
  command.add_option("--timeout", flags->timeout_seconds, "Seconds for all of it [240]")
      ->check(CLI::Range(1, 86'400).description(""));
  command.add_flag("--keep", flags->keep, "Leave the job");
  command.footer(kExamples);
  command.callback([flags, &exit_code] {
    exit_code = RunInCluster(flags->target,
                             [&flags](Session& session) { return CheckCluster(session, *flags); });
  });
}

}  // namespace adamant::kubectl
