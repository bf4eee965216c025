#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/state.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/job/job.h"

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::local {

/// Differences between the manifest of a run that is to go on and that which it was last started
/// with, and between its data and what it began with. Each is a line: the field, its values, and of
/// what is refused why, or what to do.
struct Resumption {
  std::vector<std::string> taken;
  std::vector<std::string> refused;  ///< not empty: the run must not go on
};

/// Compares. With `accept_changes` what can be taken only if it is meant is taken, and so it is
/// where the job has succeeded and has no more epochs: then nothing comes of it. A run that has
/// never started, or whose version did not store what it started with, has no differences.
/// Training data with another number of examples is never taken.
/// Of the data job::FingerprintFiles reads what it needs; of a job that has succeeded and has no
/// more epochs it need not be there.
/// Errors: FailedPrecondition when the state is older than the run (old_state.h), unless accepted;
/// DataLoss when what is stored cannot be read; those of the file system.
absl::StatusOr<Resumption> CompareWithStart(const v1::TrainingJob& job,
                                            const RunPaths& paths,
                                            bool accept_changes);

/// Returns what keeps `job` from going on with what another run has stored, that was started as
/// `began` and read the files `known`: the fields and files that do not fit, a line each, as
/// Resumption::refused. Fields that change what is trained, and not what is stored, fit.
/// Errors: those of job::FingerprintFiles.
absl::StatusOr<std::vector<std::string>> WhatDoesNotFit(
    const v1::TrainingJob& began,
    const v1::TrainingJob& job,
    const std::vector<controller::DataFile>& known);

/// The manifest of a run that is looked at, or whose models are.
struct RunManifest {
  std::unique_ptr<v1::TrainingJob> job;    ///< null: `problems` says why
  std::vector<job::Diagnostic> problems;   ///< of job.yaml
  std::filesystem::path file;              ///< where `job` is from
  std::unique_ptr<v1::TrainingJob> draft;  ///< what job.yaml says where it has problems
};

/// Returns whether the job, by the manifest `job`, has succeeded and has no more epochs: nothing is
/// left to train. False where what is stored cannot be read.
bool IsOver(const v1::TrainingJob& job, const RunPaths& paths);

/// The same by a manifest that may have been edited since: where fields of it are wrong, only if
/// it surely asks for no more than has been trained.
bool IsOver(const RunManifest& manifest, const RunPaths& paths);

/// The manifest that the run was started with last, which is what its checkpoints are of; null
/// where there is none, as in CompareWithStart. Errors: as there.
absl::StatusOr<std::unique_ptr<v1::TrainingJob>> ReadStart(
    const RunPaths& paths, job::DataReading reading = job::DataReading::kNone);

/// Reads job.yaml; where fields of it are wrong, as those that nobody knows, takes what the run was
/// started with, if that is there. Threads: any.
RunManifest ReadRunManifest(const RunPaths& paths, job::DataReading reading);

/// Returns what is to be told of a job.yaml instead of which what the run was started with was
/// taken; "" where it was taken itself. `manifest` has a job.
std::string NotTaken(const RunManifest& manifest);

/// Returns what to tell where a run has succeeded, all its epochs are trained, and its job.yaml or
/// its data has changed so (Resumption::taken): none of it is taken, and what to do about that.
std::string NothingTaken(const v1::TrainingJob& job,
                         const RunPaths& paths,
                         const std::vector<std::string>& changes);

/// The same of a run that has failed at its end: what has changed is taken and trains nothing. ""
/// where nothing of it has to do with training.
std::string NoEffect(const v1::TrainingJob& job,
                     const RunPaths& paths,
                     const std::vector<std::string>& changes);

/// Writes job.yaml and started.yaml of the job that runs anew where they are gone; says whether any
/// was. Errors: those of the file system.
absl::StatusOr<bool> BringBackManifests(const v1::TrainingJob& job, const RunPaths& paths);

/// Stores what the run is started with; the caller has locked it. Errors: of the file system.
absl::Status StoreStart(const v1::TrainingJob& job, const RunPaths& paths);

}  // namespace adamant::local
