#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/auth/config.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace adamant::kubectl {

/// Job and cluster that a command is for: the flags that all commands have.
struct Target {
  kube::ConfigFlags config;
  std::string ns;   ///< empty: that of the context
  std::string job;  ///< a TrainingJob
};

/// Declares JOB, and what AddCluster does.
void AddTarget(CLI::App& command, Target& target);

/// Declares --namespace, --context and --kubeconfig.
void AddCluster(CLI::App& command, Target& target);

/// Declares --output, text or json.
void AddOutput(CLI::App& command, bool& json);

/// Everything that a command works with.
struct Session {
  kube::Client client;  ///< its requests end with `cancellation`
  std::string ns;
  const Clock& clock;
  kube::Sleeper& sleeper;
  kube::Cancellation cancellation;                ///< Ctrl-C and SIGTERM
  std::function<void(const std::string&)> print;  ///< to standard output; threads: any
};

/// Connects to the cluster, runs `command`, which returns an exit code, prints its error with what
/// to do about it, and returns the exit code that goes with it.
int RunInCluster(const Target& target,
                 const std::function<absl::StatusOr<int>(Session& session)>& command);

/// Connects without heed to signals, for tests of what a user may do and for completion. What is
/// printed is dropped. `clock` and `sleeper` outlive what `use` does.
absl::Status UseCluster(const Target& target,
                        const std::function<absl::Status(Session& session)>& use);

/// The exit code for an error: what was asked for is wrong (kBadInput), the user has stopped it
/// (kInterrupted), or the cluster does not let it (kCannotRun).
int ExitCodeOf(const absl::Status& status);

/// The error for people: its message, and what to do where that is known.
std::string Advised(const absl::Status& status);

}  // namespace adamant::kubectl
