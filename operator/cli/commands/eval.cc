#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/display.h"
#include "operator/cli/commands/model_warning.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/output_file.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/console/text.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/local/model/model_file.h"
#include "operator/local/run_folder/run_paths.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/run_status.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/dataset/dataset.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/idx.h"
#include "services/common/graph/context.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant eval runs/first
      Accuracy of the run's model on its validation data.
  adamant eval model.safetensors --job job.yaml
      The same for any model of the manifest's net.
  adamant eval runs/first --predictions classes.txt
      Writes the class of each example, one a line, in the order of the data.)";

constexpr std::int64_t kBatch = 64;

struct EvalFlags {
  std::string model;
  std::string job;
  std::string predictions;
};

struct Evaluation {
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
  std::string predictions;  // a class a line
  std::string job;          // that the model says it is of; "" where it does not
  std::string otherwise;    // how the manifest normalises where the model says something else
};

absl::StatusOr<dataset::Dataset> LoadData(const v1::DataSource& source) {
  if (source.has_digits()) {
    return dataset::GenerateDigits(
        {.seed = static_cast<std::uint64_t>(source.digits().seed()),
         .examples = static_cast<std::uint64_t>(source.digits().examples())});
  }
  if (!source.has_idx() || source.idx().has_claim()) {
    return absl::InvalidArgumentError(
        "spec.data.validation: eval reads files of this machine or draws digits; fetch the files, "
        "and name them in a copy of the manifest");
  }
  return dataset::ReadIdx({.images = source.idx().images(), .labels = source.idx().labels()});
}

// Writes examples [begin, begin + count) into the context's input.
void FillInput(const dataset::Dataset& data,
               std::uint64_t begin,
               std::uint64_t count,
               const exports::Normalisation& normalisation,
               graph::Context& context) {
  const std::uint64_t pixels = std::uint64_t{data.height} * data.width;
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::span<const std::uint8_t> image = data.image(begin + i);
    for (std::uint64_t p = 0; p < image.size(); ++p) {
      const std::size_t channel = p / pixels;
      context.input()[next++] = (static_cast<float>(image[p]) - normalisation.mean[channel]) /
                                normalisation.deviation[channel];
    }
    context.labels()[i] = data.labels[begin + i];
  }
}

// "mean [33.3], deviation [78.5]", of bytes.
std::string TextOf(const exports::Normalisation& normalisation) {
  const local::NormalisationText numbers = local::TextOf(normalisation);
  return "mean " + numbers.mean + ", deviation " + numbers.deviation;
}

// What counts is what the model was trained with. `otherwise`: what it is instead of the
// manifest's.
exports::Normalisation NormalisationFor(const local::ModelFile& model,
                                        const exports::Normalisation& of_manifest,
                                        std::string& otherwise) {
  if (!model.normalisation) {
    return of_manifest;
  }
  if (const std::string own = TextOf(*model.normalisation), other = TextOf(of_manifest);
      own != other) {
    otherwise = "normalises pixels (0 to 255) by " + own +
                ", as it was trained; that is used, not " + other +
                ", which is 255 times what is in";
  }
  return *model.normalisation;
}

absl::StatusOr<Evaluation> EvaluateModel(const v1::TrainingJob& job,
                                         const std::filesystem::path& path,
                                         Pipes pipes) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  ADAMANT_ASSIGN_OR_RETURN(const local::ModelFile model, local::ReadModel(path, graph, pipes));
  ADAMANT_ASSIGN_OR_RETURN(const dataset::Dataset data, LoadData(job.spec().data().validation()));
  ADAMANT_ASSIGN_OR_RETURN(
      const auto context,
      graph::Context::Create(graph, kBatch, graph::BackendKind::kOneDnn, /*training=*/false));
  const auto classes = static_cast<std::size_t>(graph.classes);
  Evaluation evaluation;
  const exports::Normalisation normalisation =
      NormalisationFor(model, local::NormalisationOf(job, graph), evaluation.otherwise);
  if (const auto named = model.metadata.find("job"); named != model.metadata.end()) {
    evaluation.job = named->second;
  }
  for (std::uint64_t begin = 0; begin < data.size(); begin += kBatch) {
    const std::uint64_t count = std::min<std::uint64_t>(kBatch, data.size() - begin);
    FillInput(data, begin, count, normalisation, *context);
    const graph::StepResult step =
        context->Evaluate(static_cast<std::int64_t>(count), model.weights);
    evaluation.examples += count;
    evaluation.correct += static_cast<std::uint64_t>(step.correct);
    evaluation.loss_sum += step.loss_sum;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::span<const float> logits = context->logits().subspan(i * classes, classes);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      evaluation.predictions += std::to_string(best) + "\n";
    }
  }
  return evaluation;
}

// Of a run whose job has no result, and whose controller is gone.
std::string HowItEnded(controller::Phase phase) {
  return phase == controller::Phase::kSuspended
             ? "was stopped"
             : "was interrupted: its adamant train is gone without having ended it";
}

// Why a run holds no model, and whether it will.
std::string WhyNoModel(const std::string& run_folder) {
  const absl::StatusOr<local::RunStatus> run = local::ReadRunStatus(run_folder);
  if (!run.ok()) {
    return " holds no model, and how it stands cannot be read: " +
           std::string(run.status().message());
  }
  const controller::JobReport& report = run->report;
  switch (report.phase) {
    case controller::Phase::kSucceeded:
      return " holds its model no more: model.safetensors was removed";
    case controller::Phase::kFailed:
      return " holds no model, as the job failed (" + report.message + ")" +
             (MayDoBetter(report.end) ? "; " + HowToGoOn(report, run_folder) : "");
    default:
      return " holds no model yet: a job writes model.safetensors when it has succeeded, and this "
             "one " +
             (run->live ? "runs" : HowItEnded(report.phase) + "; " + HowToGoOn({}, run_folder));
  }
}

std::string NoModelText(const std::string& run_folder) {
  if (const absl::Status run = local::CheckHoldsRun(local::RunPaths(run_folder)); !run.ok()) {
    return std::string(run.message());
  }
  return run_folder + WhyNoModel(run_folder) + "; adamant export " + run_folder +
         " --format safetensors --out FILE writes the model of its newest checkpoint, if it has "
         "one, which eval takes with --job " +
         local::RunPaths(run_folder).job().string();
}

std::string LossText(double loss) {
  return std::isfinite(loss) ? Text("loss %.4f", loss)
                             : "no finite loss: weights or outputs of the model are too large";
}

// Nobody has named the manifest, so it is said which it is, and whether it is likely to fit.
void TellManifest(const std::filesystem::path& model,
                  const std::filesystem::path& manifest,
                  const std::string& of_model,
                  const std::string& of_manifest) {
  std::fprintf(stderr, "net and data: %s, beside the model\n", manifest.c_str());
  if (!of_model.empty() && of_model != of_manifest) {
    std::fprintf(stderr,
                 "warning: %s is a model of job %s, and %s is the manifest of %s: the data may be "
                 "other data; --job names another manifest\n",
                 model.c_str(),
                 of_model.c_str(),
                 manifest.c_str(),
                 of_manifest.c_str());
  }
}

// One that was named is taken as it is; that beside a model is a run's.
local::RunManifest ReadManifest(const std::filesystem::path& manifest, bool is_named) {
  if (!is_named) {
    return local::ReadRunManifest(local::RunPaths(manifest.parent_path()),
                                  job::DataReading::kValidation);
  }
  job::ParseResult parsed = job::LoadJob(manifest, job::DataReading::kValidation);
  return {.job = std::move(parsed.job),
          .problems = std::move(parsed.problems),
          .file = manifest,
          .draft = nullptr};
}

// The model that is evaluated, and the manifest that says on which data.
struct EvalFiles {
  std::filesystem::path model;
  std::filesystem::path manifest;
  bool is_run = false;
};

// Finds both; an ExitCode if that fails.
int FindFiles(const EvalFlags& flags, EvalFiles& files) {
  auto& [model, manifest, is_run] = files;
  model = flags.model;
  manifest = flags.job;
  std::error_code error;
  if (std::filesystem::status(model, error).type() == std::filesystem::file_type::not_found) {
    PrintError(model.string() + " does not exist; the folder of a run, or a model file, is wanted");
    return kBadInput;
  }
  is_run = std::filesystem::is_directory(model, error);
  if (is_run) {
    const local::RunPaths paths(model);
    model = paths.safetensors();
    manifest = manifest.empty() ? paths.job() : manifest;
  } else if (manifest.empty()) {
    manifest = local::RunPaths(model.parent_path()).job();
  }
  const bool is_own = is_run && flags.job.empty();
  if (!std::filesystem::exists(manifest, error) ||
      (is_own && !std::filesystem::is_regular_file(manifest, error))) {
    const absl::Status run = local::CheckHoldsRun(local::RunPaths(manifest.parent_path()));
    if (is_own && !run.ok()) {
      PrintError(std::string(run.message()) + "; or name another by --job");
      return kBadInput;
    }
    PrintError("no manifest at " + manifest.string() + "; --job names the one of the model's net");
    return kBadInput;
  }
  return kOk;
}

// Writes the predictions, if they are wanted, and tells the result.
int TellEvaluation(const EvalFlags& flags, const Evaluation& evaluation) {
  if (!flags.predictions.empty()) {
    const absl::Status written = WriteFile(flags.predictions, evaluation.predictions);
    if (!written.ok()) {
      PrintError(std::string(written.message()));
      return kCannotRun;
    }
  }
  const auto examples = static_cast<double>(evaluation.examples);
  std::fprintf(SummaryStream(flags.predictions),
               "top-1 %.2f%% (%llu of %llu), %s\n",
               100 * static_cast<double>(evaluation.correct) / examples,
               Wide(evaluation.correct),
               Wide(evaluation.examples),
               LossText(evaluation.loss_sum / examples).c_str());
  return kOk;
}

int Eval(const EvalFlags& flags) {
  if (const absl::Status status = CheckOutputFile(flags.predictions); !status.ok()) {
    PrintError("--predictions " + std::string(status.message()));
    return kBadInput;
  }
  EvalFiles files;
  if (const int code = FindFiles(flags, files); code != kOk) {
    return code;
  }
  auto& [model, manifest, is_run] = files;
  std::error_code error;
  const local::RunManifest read = ReadManifest(manifest, !flags.job.empty());
  if (read.job == nullptr) {
    PrintProblems(read.problems);
    return kBadInput;
  }
  if (const std::string not_taken = local::NotTaken(read); !not_taken.empty()) {
    PrintWarnings({not_taken});
  }
  manifest = read.file;
  if (is_run && !std::filesystem::exists(model, error)) {
    PrintError(NoModelText(flags.model));
    return kBadInput;
  }
  const absl::StatusOr<Evaluation> evaluation =
      EvaluateModel(*read.job, model, is_run ? Pipes::kRefused : Pipes::kRead);
  if (!evaluation.ok()) {
    PrintError(std::string(evaluation.status().message()));
    return absl::IsResourceExhausted(evaluation.status()) ? kCannotRun : kBadInput;
  }
  if (!is_run && flags.job.empty()) {
    TellManifest(model, manifest, evaluation->job, read.job->metadata().name());
  }
  if (!evaluation->otherwise.empty()) {
    std::fprintf(stderr,
                 "warning: %s %s %s\n",
                 model.c_str(),
                 evaluation->otherwise.c_str(),
                 manifest.c_str());
  }
  if (const std::string warning = is_run ? ModelWarning(flags.model) : ""; !warning.empty()) {
    PrintWarnings({warning});
  }
  return TellEvaluation(flags, *evaluation);
}

}  // namespace

void AddEval(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("eval", "Measure a model on the validation data");
  const auto flags = std::make_shared<EvalFlags>();
  command.add_option("MODEL", flags->model, "Run directory, or a safetensors file")->required();
  command.add_option("--job", flags->job, "Manifest with net and data [job.yaml beside the model]");
  command.add_option("--predictions", flags->predictions, "File for the class of each example")
      ->check(Path());
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Eval(*flags); });
}

}  // namespace adamant::cli
