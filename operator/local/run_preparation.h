#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/messages.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

/// Preparation of a run, before its controller begins. Threads: any, one at a time for a folder.
namespace adamant::local {

/// Returns where the program of a role is.
std::filesystem::path ProgramOf(controller::Role role, const std::filesystem::path& bin_dir);

/// Checks that the services' programs are there. Error: NotFound, naming the first that is not.
absl::Status CheckPrograms(const std::filesystem::path& bin_dir);

/// Puts a new run into `run_folder`, which must be empty or absent, or, where it is empty, into a
/// new folder of runs/: job.yaml and the folders, or nothing. Returns the folder. Errors:
/// AlreadyExists; those of the file system.
absl::StatusOr<std::filesystem::path> PrepareRun(const v1::TrainingJob& job,
                                                 const std::filesystem::path& run_folder);

/// Returns the status; of a full disk, or a file that may not grow, with what to do about it, and
/// `then` what.
absl::Status WithAdvice(const absl::Status& status, const std::string& then);

}  // namespace adamant::local
