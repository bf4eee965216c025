#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/local/processes/launcher.h"
#include "operator/local/processes/processes.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/run_folder/socket_folder.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// The processes of a run: each with its program, flags, folder and log.
/// Threads: one, as Processes.
class RunProcesses {
 public:
  /// Place at which processes find the controller, and where they listen.
  struct Way {
    std::string controller;                 ///< its address
    const SocketFolder* sockets = nullptr;  ///< null: they have ports
  };

  /// `job` and `launcher` must outlive this. `launcher`: null: the processes are children of this
  /// one. `programs`: the folder of the programs.
  RunProcesses(const v1::TrainingJob& job,
               RunPaths paths,
               std::filesystem::path programs,
               Launcher* launcher);

  /// Returns whether all processes are children of this one, so that none outlives it.
  [[nodiscard]] bool AreChildren() const { return &launcher_ == &children_; }

  Launcher& launcher() { return launcher_; }

  /// Starts a process. `tell`: is called with what was in the place of its folder and is moved
  /// aside. Errors: those of Launcher::Start and CheckLinks.
  absl::Status Start(const controller::StartProcess& start,
                     const Way& way,
                     const std::function<void(std::string)>& tell);

 private:
  // Constant after construction.
  const v1::TrainingJob& job_;
  const RunPaths paths_;
  const std::filesystem::path programs_;

  Processes children_;  // none where another launcher is given
  Launcher& launcher_;
};

}  // namespace adamant::local
