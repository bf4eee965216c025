#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/job/job_controller.h"
#include "operator/local/observer.h"
#include "operator/local/processes/launcher.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

struct RunOptions {
  std::filesystem::path run_folder;
  std::filesystem::path bin_dir;    ///< passes CheckPrograms
  std::string listen = {};          ///< host:port of the controller; empty: all processes have Unix
                                    ///< sockets, which no other user can connect to
  std::string metrics_listen = {};  ///< host:port of /metrics; empty: none
  std::vector<std::string> warnings = {};  ///< of the manifest, to be told first
  std::vector<std::string> changes = {};   ///< of the manifest since the run was started; likewise
  bool accept_changes =
      false;             ///< the data may be other data than before: what is read first counts
  bool is_over = false;  ///< nothing is left to train: the training data need not be there
  Launcher* launcher = nullptr;  ///< borrowed; its processes may outlive this one; null: the
                                 ///< processes are children of this one and end with it
};

/// Account of how a run ended.
struct RunOutcome {
  controller::JobReport report;
  std::vector<controller::EpochResult> results;
  absl::Status stored;  ///< not OK: the job ended because its state could not be stored, or its
                        ///< model as something else lies in its place
};

/// Runs the job in `run_folder`, from where it stands, until it has succeeded, failed or been
/// stopped by a signal: starts the processes, restarts those that die, and stops them all at the
/// end. How it ended is in the report's phase. A signal suspends the job, within 3 s; a second one
/// kills. Threads: the main thread only, after BlockStopSignals. Errors: what keeps it from
/// starting: the run directory is in use or cannot be written, its disk is full, its state is
/// damaged.
absl::StatusOr<RunOutcome> RunJob(v1::TrainingJob job,
                                  const RunOptions& options,
                                  Observer& observer);

}  // namespace adamant::local
