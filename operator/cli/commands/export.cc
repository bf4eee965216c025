#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/model_warning.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/output_file.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/console/text.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/local/checkpoints/save_checkpoint.h"
#include "operator/local/model/checkpoint_model.h"
#include "operator/local/model/model_file.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/run_status.h"
#include "operator/local/state/state_copies.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/export/safetensors.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant export runs/first --format onnx --out digits.onnx
  adamant export runs/first --format safetensors --out digits.safetensors
  adamant export runs/first --checkpoint 12 --format onnx --out digits-12.onnx
      The model of a checkpoint, also while the job runs; checkpoints/ names those there are.
  adamant export runs/first --format checkpoint --out first-whole
      The newest checkpoint whole, in a folder, for spec.startFrom of another job.)";

/// Of a model; or a checkpoint whole.
enum class Format { kSafetensors, kOnnx, kCheckpoint };

struct ExportFlags {
  std::string run_folder;
  Format format = Format::kOnnx;
  std::string out;
  std::uint64_t checkpoint = 0;  // 0: the newest model
};

// The model of the checkpoint that is asked for; else the one that the run has written when it
// succeeded, else that of its newest checkpoint.
absl::StatusOr<local::ModelFile> ReadRunModel(const v1::TrainingJob& job,
                                              const ExportFlags& flags,
                                              const model::Graph& graph) {
  const local::RunPaths paths(flags.run_folder);
  std::error_code error;
  if (flags.checkpoint != 0 || !std::filesystem::exists(paths.safetensors(), error)) {
    ADAMANT_RETURN_IF_ERROR(local::CheckHoldsRun(paths));
    return local::ReadCheckpointModel(job, paths, flags.checkpoint);
  }
  return local::ReadModel(paths.safetensors(), graph);
}

std::string EpochOf(const exports::Metadata& metadata) {
  const auto epoch = metadata.find("epoch");
  return epoch == metadata.end() ? "" : "epoch " + epoch->second;
}

// Which model it is, where it is not the one that a run has written as it succeeded; else "".
std::string WhichModel(const exports::Metadata& metadata, const ExportFlags& flags) {
  if (const auto checkpoint = metadata.find("checkpoint"); checkpoint != metadata.end()) {
    return "checkpoint " + checkpoint->second + ", " + EpochOf(metadata) +
           (flags.checkpoint == 0 ? ": the newest that can be read" : "");
  }
  const absl::StatusOr<local::RunStatus> run = local::ReadRunStatus(flags.run_folder);
  return run.ok() && run->report.phase != controller::Phase::kSucceeded ? EpochOf(metadata) : "";
}

// Returns WhichModel.
absl::StatusOr<std::string> ExportRun(const v1::TrainingJob& job, const ExportFlags& flags) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  ADAMANT_ASSIGN_OR_RETURN(const local::ModelFile model, ReadRunModel(job, flags, graph));
  ADAMANT_RETURN_IF_ERROR(local::WriteModel(
      {.path = flags.out,
       .format = flags.format == Format::kOnnx ? local::ModelFormat::kOnnx
                                               : local::ModelFormat::kSafetensors},
      job,
      graph,
      model.weights,
      model.metadata));
  if (const std::uint64_t bad = local::CountNotFinite(model.weights); bad > 0) {
    std::fprintf(
        stderr,
        "warning: %llu of the model's %zu weights %s NaN or infinite, and it is of no use; "
        "another checkpoint may be (--checkpoint N)\n",
        Wide(bad),
        model.weights.size(),
        bad == 1 ? "is" : "are");
  }
  return WhichModel(model.metadata, flags);
}

// Returns which checkpoint it is.
absl::StatusOr<std::string> SaveWhole(const v1::TrainingJob& job, const ExportFlags& flags) {
  const local::RunPaths paths(flags.run_folder);
  ADAMANT_RETURN_IF_ERROR(local::CheckHoldsRun(paths));
  ADAMANT_ASSIGN_OR_RETURN(const local::StateCopies::Stored stored,
                           local::StateCopies::Read({paths.controller(), paths.controller_copy()}));
  const local::CheckpointSource source{
      .job = job, .paths = paths, .entries = stored.snapshot.entries};
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t newest, local::NewestCheckpoint(source));
  if (flags.checkpoint != 0 && flags.checkpoint != newest) {
    return absl::NotFoundError("the newest checkpoint alone can be exported whole, and that is " +
                               std::to_string(newest) +
                               "; spec.output.checkpoints copies them as they are taken");
  }
  ADAMANT_RETURN_IF_ERROR(local::SaveCheckpoint(source, flags.out));
  return "checkpoint " + std::to_string(newest) + ", whole";
}

// Of what manifest the run's models are: its job.yaml may be another one by now.
std::unique_ptr<v1::TrainingJob> TrainedJob(const local::RunPaths& paths,
                                            std::unique_ptr<v1::TrainingJob> of_folder) {
  auto started = local::ReadStart(paths);
  if (!started.ok()) {
    std::fprintf(stderr,
                 "warning: %s; what is exported is the net of job.yaml\n",
                 std::string(started.status().message()).c_str());
  }
  return started.ok() && *started != nullptr ? *std::move(started) : std::move(of_folder);
}

int Export(const ExportFlags& flags) {
  const bool whole = flags.format == Format::kCheckpoint;
  if (const absl::Status status = whole ? CheckOutputFolder(flags.out) : CheckOutputFile(flags.out);
      !status.ok()) {
    PrintError("--out " + std::string(status.message()));
    return kBadInput;
  }
  const local::RunPaths paths(flags.run_folder);
  if (std::error_code error; !std::filesystem::is_regular_file(paths.job(), error)) {
    if (const absl::Status run = local::CheckHoldsRun(paths); !run.ok()) {
      PrintError(std::string(run.message()));
      return kBadInput;
    }
  }
  local::RunManifest manifest = local::ReadRunManifest(paths, job::DataReading::kNone);
  if (manifest.job == nullptr) {
    PrintProblems(manifest.problems);
    return kBadInput;
  }
  const auto job = TrainedJob(paths, std::move(manifest.job));
  const auto which = whole ? SaveWhole(*job, flags) : ExportRun(*job, flags);
  if (const absl::Status& status = which.status(); !status.ok()) {
    PrintError(std::string(status.message()));
    const bool bad_input = absl::IsDataLoss(status) || absl::IsInvalidArgument(status) ||
                           absl::IsNotFound(status) || absl::IsAlreadyExists(status);
    return bad_input ? kBadInput : kCannotRun;
  }
  if (const std::string warning = ModelWarning(flags.run_folder); !warning.empty()) {
    PrintWarnings({warning});
  }
  if (!which->empty()) {
    std::fprintf(stderr, "%s: %s\n", whole ? "saved" : "model", which->c_str());
  }
  std::fprintf(SummaryStream(flags.out), "%s\n", flags.out.c_str());
  return kOk;
}

}  // namespace

void AddExport(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "export", "Write a run's model, or a whole checkpoint, in a format of choice");
  const auto flags = std::make_shared<ExportFlags>();
  AddFolder(command, "RUN_DIR", flags->run_folder, "Folder of the run")->required();
  AddChoice<Format>(command,
                    "--format",
                    flags->format,
                    {{"safetensors", Format::kSafetensors},
                     {"onnx", Format::kOnnx},
                     {"checkpoint", Format::kCheckpoint}},
                    "Format of the file; checkpoint: a folder, with all to go on training from")
      ->required();
  command
      .add_option("--out", flags->out, "File to write; of a checkpoint the folder, empty or new")
      ->required()
      ->check(Path());
  command
      .add_option("--checkpoint",
                  flags->checkpoint,
                  "Number of a checkpoint [the final model, or the newest]")
      ->check(WholeNumber());
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Export(*flags); });
}

}  // namespace adamant::cli
