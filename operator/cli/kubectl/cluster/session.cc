#include "operator/cli/kubectl/cluster/session.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/kube_client/auth/credentials.h"
#include "operator/kube_client/http/http_transport.h"
#include "services/common/base/clock.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr std::chrono::milliseconds kProbe{100};

// Cancels what runs when the user wants the program to end. The signals are blocked from before any
// thread starts, so that only this one gets them.
class StopOnSignal {
 public:
  explicit StopOnSignal(const kube::Cancellation& cancellation) {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      sigaddset(&signals_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
    thread_ = std::jthread([this, cancellation](const std::stop_token& stop) {
      const timespec wait{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kProbe).count()};
      while (!stop.stop_requested()) {
        if (sigtimedwait(&signals_, nullptr, &wait) > 0) {
          cancellation.Cancel();
        }
      }
    });
  }

 private:
  sigset_t signals_{};
  std::jthread thread_;
};

// Where nobody reads any more, as `head` that has seen enough, there is nothing left to do.
void PrintNow(const std::string& text, const kube::Cancellation& cancellation) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    cancellation.Cancel();
  }
}

absl::Status Connect(const Target& target,
                     const kube::Cancellation& cancellation,
                     const std::function<absl::Status(Session& session)>& use) {
  ADAMANT_ASSIGN_OR_RETURN(const kube::Config config,
                           kube::LoadConfig(target.config, kube::ProcessEnvironment()));
  const SystemClock clock;
  kube::SystemSleeper sleeper;
  kube::Credentials credentials(config, clock);
  const auto transport = kube::MakeTransport(config, credentials);
  Session session{
      .client = kube::Client(*transport, clock, sleeper, {.max_retries = 2}).With(cancellation),
      .ns = target.ns.empty() ? config.default_namespace : target.ns,
      .clock = clock,
      .sleeper = sleeper,
      .cancellation = cancellation,
      .print = [&cancellation](const std::string& text) { PrintNow(text, cancellation); }};
  return use(session);
}

}  // namespace

void AddTarget(CLI::App& command, Target& target) {
  command.add_option("JOB", target.job, "Name of a TrainingJob")->required();
  AddCluster(command, target);
}

void AddCluster(CLI::App& command, Target& target) {
  command.add_option("-n,--namespace", target.ns, "Its namespace [that of the context]");
  command.add_option("--context", target.config.context, "Context of the kubeconfig file");
  command.add_option("--kubeconfig", target.config.kubeconfig, "Kubeconfig file")
      ->description("How to reach the cluster [$KUBECONFIG, ~/.kube/config]");
}

void AddOutput(CLI::App& command, bool& json) {
  cli::AddChoice<bool>(command,
                       "-o,--output",
                       json,
                       {{"text", false}, {"json", true}},
                       "For people, or JSON for machines");
}

int RunInCluster(const Target& target,
                 const std::function<absl::StatusOr<int>(Session& session)>& command) {
  const kube::Cancellation cancellation;
  const StopOnSignal stop(cancellation);
  int exit_code = cli::kOk;
  absl::Status status = Connect(target, cancellation, [&](Session& session) -> absl::Status {
    ADAMANT_ASSIGN_OR_RETURN(exit_code, command(session));
    return absl::OkStatus();
  });
  if (cancellation.cancelled() && !status.ok()) {
    return cli::kInterrupted;
  }
  if (!status.ok()) {
    cli::PrintError(Advised(status));
    return ExitCodeOf(status);
  }
  return exit_code;
}

absl::Status UseCluster(const Target& target,
                        const std::function<absl::Status(Session& session)>& use) {
  return Connect(target, kube::Cancellation(), [&use](Session& session) {
    session.print = [](const std::string&) {};
    return use(session);
  });
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return cli::kOk;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return cli::kBadInput;
    case absl::StatusCode::kCancelled:
      return cli::kInterrupted;
    default:
      return cli::kCannotRun;
  }
}

std::string Advised(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return message +
             "; whoever manages the cluster grants it, for most commands by the role view of the "
             "namespace, for checkpoint, export and check by edit";
    case absl::StatusCode::kUnauthenticated:
      return message + "; log in to the cluster again, or name another --context";
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return message + "; is the cluster there, and --context the right one?";
    default:
      return message;
  }
}

}  // namespace adamant::kubectl
