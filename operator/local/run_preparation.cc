#include "operator/local/run_preparation.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "operator/local/run_folder/run_paths.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/job/job.h"

namespace adamant::local {
namespace {

using controller::Role;

constexpr Role kRoles[] = {Role::kDataServer, Role::kParameterServer, Role::kWorker};

}  // namespace

std::filesystem::path ProgramOf(Role role, const std::filesystem::path& bin_dir) {
  return bin_dir / ("adamant-" + std::string(controller::RoleName(role)));
}

absl::Status CheckPrograms(const std::filesystem::path& bin_dir) {
  for (const Role role : kRoles) {
    const std::filesystem::path program = ProgramOf(role, bin_dir);
    if (access(program.c_str(), X_OK) != 0) {
      return absl::NotFoundError("cannot run " + program.string() + ": " + std::strerror(errno) +
                                 "; --bin-dir names the folder of the adamant-* programs");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::filesystem::path> PrepareRun(const v1::TrainingJob& job,
                                                 const std::filesystem::path& run_folder) {
  std::filesystem::path folder = run_folder;
  if (run_folder.empty()) {
    absl::StatusOr<std::filesystem::path> made = MakeRunFolder("runs", job.metadata().name());
    ADAMANT_RETURN_IF_ERROR(WithAdvice(made.status(), "begin again"));
    folder = *std::move(made);
  }
  const absl::Status status = CreateRunFolder(RunPaths(folder), job::ToYaml(job));
  if (!status.ok() && run_folder.empty()) {
    std::error_code error;
    std::filesystem::remove(folder, error);  // if it is empty
    std::filesystem::remove(folder.parent_path(), error);
  }
  ADAMANT_RETURN_IF_ERROR(WithAdvice(status, "begin again"));
  return folder;
}

absl::Status WithAdvice(const absl::Status& status, const std::string& then) {
  if (!absl::IsResourceExhausted(status)) {
    return status;
  }
  const std::string message(status.message());
  const std::string known = WhatMakesRoom(message);
  return {status.code(),
          message + "; " + (known.empty() ? "make room on that disk" : known) + ", then " + then};
}

}  // namespace adamant::local
