#include "operator/local/state/resumption.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/control/job_settings.h"
#include "operator/core/job/job_controller.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/state/job_data.h"
#include "operator/local/state/kv_state_store.h"
#include "operator/local/state/mode_change.h"
#include "operator/local/state/old_state.h"
#include "operator/local/state/state_copies.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/job/data_files.h"
#include "services/common/job/job.h"
#include "services/common/job/yaml/changes.h"

namespace adamant::local {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 22;

enum class Answer {
  kTaken,       // has nothing to do with what is stored
  kIfAccepted,  // training goes on, but as another one than was begun
  kRefused,     // what is stored does not fit
};

// What follows from the change of a field, or of one within it. The longest path counts.
struct Rule {
  std::string_view path;
  Answer answer;
  const char* why = "";
};

constexpr char kNet[] = "the parameters that are stored are those of the net as it was";
constexpr char kBatches[] = "what of an epoch is done is counted in the batches as they were";
constexpr char kServers[] = "what is stored is spread over the servers as they were";
constexpr char kState[] = "the optimiser's state is stored as it was";
constexpr char kSameData[] = "if it is the same data in another place";

constexpr Rule kRules[] = {
    {"", Answer::kTaken},
    {"spec.model", Answer::kRefused, kNet},
    {"spec.data", Answer::kRefused, kBatches},
    {"spec.data.train.idx", Answer::kIfAccepted, kSameData},
    {"spec.data.train.download", Answer::kIfAccepted, kSameData},
    {"spec.data.validation", Answer::kIfAccepted},
    {"spec.data.transformations", Answer::kIfAccepted},
    {"spec.data.cache", Answer::kTaken},
    {"spec.data.prefetch", Answer::kTaken},
    {"spec.optimiser", Answer::kIfAccepted},
    {"spec.optimiser.kind", Answer::kRefused, kState},
    {"spec.optimiser.location", Answer::kRefused, kState},
    {"spec.distribution", Answer::kIfAccepted},
    {"spec.distribution.workers", Answer::kTaken},
    {"spec.distribution.threadsPerWorker", Answer::kTaken},
    {"spec.distribution.pinThreads", Answer::kTaken},
    {"spec.distribution.dataServers", Answer::kRefused, kServers},
    {"spec.distribution.parameterServers.count", Answer::kRefused, kServers},
    {"spec.distribution.parameterServers.buckets", Answer::kRefused, kServers},
    {"spec.distribution.parameterServers.failover", Answer::kTaken},
    {"spec.distribution.parameterServers.storage", Answer::kTaken},
    {"spec.distribution.parameterServers.persistence", Answer::kTaken},
    {"spec.distribution.parameterServers.persistence.mode", Answer::kIfAccepted},
    {"spec.runPolicy.epochCompletion", Answer::kIfAccepted},
    {"spec.runPolicy.seed", Answer::kRefused, "the weights were drawn from the seed as it was"},
};

// What is in a file that is named as before.
constexpr Rule kOtherData{
    "", Answer::kIfAccepted, "or put that file back, or begin a new run with this one"};
constexpr char kOtherSize[] =
    "what of an epoch is done is counted in the batches as they were: put those files back, or "
    "begin a new run with these";
constexpr std::string_view kTrain = "spec.data.train";

constexpr std::string_view kRunPolicy = "spec.runPolicy";  // says how long the job is

bool IsWithin(std::string_view path, std::string_view rule) {
  return rule.empty() ||
         (path.starts_with(rule) && (path.size() == rule.size() || path[rule.size()] == '.'));
}

Rule RuleOf(const job::FieldChange& change) {
  Rule found = kRules[0];
  for (const Rule& rule : kRules) {
    if (IsWithin(change.path, rule.path) && rule.path.size() >= found.path.size()) {
      found = rule;
    }
  }
  if (IsFromOrToNone(change)) {
    found = {found.path, Answer::kRefused, kNoneStores};
  }
  return found;
}

std::string Refusal(const std::string& change,
                    const std::string& why,
                    const std::string& more = "") {
  return change + " (" + why + (more.empty() ? "" : ", ") + more + ")";
}

constexpr std::string_view kChecksumLine = "# xxh3_64 of all below: ";

// The text after a line that guards it.
std::string Checked(std::string_view text) {
  return std::string(kChecksumLine) + HexChecksum(std::as_bytes(std::span(text))) + "\n" +
         std::string(text);
}

// Runs of earlier versions have no such line.
bool IsDamaged(const std::string& text) {
  const std::size_t line = text.find('\n');
  return text.starts_with(kChecksumLine) &&
         (line == std::string::npos || Checked(text.substr(line + 1)) != text);
}

// Sorts a change in: `line` says what it is.
void Judge(const std::string& line, const Rule& rule, bool accept_changes, Resumption& resumption) {
  if (rule.answer == Answer::kTaken || (rule.answer == Answer::kIfAccepted && accept_changes)) {
    resumption.taken.push_back(line);
  } else if (rule.answer == Answer::kIfAccepted) {
    resumption.refused.push_back(Refusal(line, "--accept-changes takes it", rule.why));
  } else {
    resumption.refused.push_back(Refusal(line, rule.why));
  }
}

// Of a line of Resumption.
std::string_view FieldOf(std::string_view line) { return line.substr(0, line.find(':')); }

std::string EpochsNow(const v1::TrainingJob& job, const RunPaths& paths) {
  return " in " + paths.job().string() + ", which has " +
         std::to_string(job.spec().run_policy().epochs()) + " now";
}

// What is stored of the run that bears on its data. None where the state is not there yet, or
// cannot be read: who runs the job says so, and its data servers compare, too.
struct Begun {
  std::vector<controller::DataFile> files;  // that the job began with
  std::uint64_t examples = 0;               // of them; 0: not known
  bool is_over = false;                     // nothing is taken of what has changed
  bool any = false;                         // state of it is there
  std::string older = "";                   // OlderThanRun
};

// Earlier versions did not store it where the manifest's files told; each epoch has counted all.
std::uint64_t ExamplesBegunWith(const controller::JobState& state,
                                const controller::StateStore::Snapshot& stored) {
  const auto result = stored.entries.lower_bound(std::string(controller::kResultPrefix));
  if (state.training_examples > 0 || result == stored.entries.end() ||
      !result->first.starts_with(controller::kResultPrefix)) {
    return state.training_examples;
  }
  const auto decoded = controller::DecodeResult(result->second);
  return decoded.ok() ? decoded->counted + decoded->left : 0;
}

Begun ReadBegun(const v1::TrainingJob& job, const RunPaths& paths) {
  if (!HasState(paths)) {
    return {};
  }
  const absl::StatusOr<StateCopies::Stored> stored =
      StateCopies::Read({paths.controller(), paths.controller_copy()});
  if (!stored.ok()) {
    return {};
  }
  const auto found = stored->snapshot.entries.find(controller::kStateKey);
  if (found == stored->snapshot.entries.end()) {
    return {};
  }
  const absl::StatusOr<controller::JobState> state = controller::DecodeState(found->second);
  if (!state.ok()) {
    return {};
  }
  const auto restored = controller::JobController::Restore(control::SettingsOf(job), found->second);
  const auto results = StoredResults(stored->snapshot);
  return {.files = state->data_files,
          .examples = ExamplesBegunWith(*state, stored->snapshot),
          .is_over = restored.ok() && (*restored)->IsOver(),
          .any = true,
          .older = results.ok() ? OlderThanRun(paths, *state, *results) : ""};
}

// The run that goes on, and what is found of changes.
struct Comparison {
  const v1::TrainingJob& job;
  const RunPaths& paths;
  const Begun begun;
  const bool accept_changes;  // or nothing is taken of them
  bool other_size = false;    // of the training data
  Resumption resumption{};
};

absl::Status CompareManifests(Comparison& comparison) {
  ADAMANT_ASSIGN_OR_RETURN(const auto started, ReadStart(comparison.paths));
  if (started == nullptr) {
    const Begun& begun = comparison.begun;
    return !begun.any || begun.is_over || comparison.accept_changes
               ? absl::OkStatus()
               : absl::FailedPreconditionError(
                     comparison.paths.started().string() +
                     " is gone, which says what the run was started with: put it back; or, if " +
                     comparison.paths.job().string() +
                     " is as it was then, go on with --accept-changes");
  }
  for (const job::FieldChange& change : job::ChangesBetween(*started, comparison.job)) {
    const bool other_size = comparison.other_size && IsWithin(change.path, kTrain);
    Judge(job::Format(change),
          other_size ? Rule{kTrain, Answer::kRefused, kBatches} : RuleOf(change),
          comparison.accept_changes,
          comparison.resumption);
  }
  return absl::OkStatus();
}

// To go on would undo what has been done since.
absl::Status CompareAge(const Comparison& comparison) {
  const RunPaths& paths = comparison.paths;
  return comparison.begun.older.empty() || comparison.accept_changes
             ? absl::OkStatus()
             : absl::FailedPreconditionError(
                   comparison.begun.older + ". If " + paths.controller().string() +
                   " was put back from a backup, put back the newest, and that of " +
                   paths.controller_copy().string() +
                   "; --accept-changes goes on from this one: what was trained since is trained "
                   "again, and checkpoints of then are lost");
}

// The batches of an epoch, and what of them is done, are those of as many examples.
absl::Status CompareSize(Comparison& comparison) {
  const v1::DataSource& train = comparison.job.spec().data().train();
  if (comparison.begun.examples == 0 || !train.has_idx()) {
    return absl::OkStatus();  // of what else a manifest has it compares the fields
  }
  const absl::StatusOr<std::uint64_t> examples = ExamplesOf(train);
  if (!examples.ok()) {
    return comparison.begun.is_over ? absl::OkStatus() : examples.status();
  }
  if (*examples == comparison.begun.examples) {
    return absl::OkStatus();
  }
  comparison.other_size = !comparison.begun.is_over;
  Judge(std::string(kTrain) + ": " + std::to_string(comparison.begun.examples) + " examples -> " +
            std::to_string(*examples),
        {"", comparison.other_size ? Answer::kRefused : Answer::kTaken, kOtherSize},
        comparison.accept_changes,
        comparison.resumption);
  return absl::OkStatus();
}

// The files of a source of the job's data, `set`, that are not those that are known: a line each.
absl::StatusOr<std::vector<std::string>> OtherFiles(
    const v1::DataSource& source, const char* set, const std::vector<controller::DataFile>& known) {
  std::vector<std::string> others;
  if (known.empty() || !source.has_idx()) {
    return others;
  }
  const dataset::IdxPaths files{.images = source.idx().images(), .labels = source.idx().labels()};
  ADAMANT_ASSIGN_OR_RETURN(
      const std::vector<job::FingerprintedFile> found,
      job::FingerprintFiles({.paths = files,
                             .names = files,
                             .fields = {.images = "idx.images", .labels = "idx.labels"}},
                            set));
  for (const job::FingerprintedFile& file : found) {
    const auto begun = std::ranges::find(known, file.field, &controller::DataFile::field);
    if (begun != known.end() && begun->fingerprint != file.fingerprint) {
      others.push_back(file.field + ": " + job::OtherFile(file.name));
    }
  }
  return others;
}

absl::Status CompareFiles(Comparison& comparison) {
  const v1::Data& data = comparison.job.spec().data();
  for (const auto& [set, source] :
       {std::pair("train", &data.train()), std::pair("validation", &data.validation())}) {
    if (source == &data.train() && comparison.other_size) {
      continue;  // it is told
    }
    const auto others = OtherFiles(*source, set, comparison.begun.files);
    if (!others.ok() && comparison.begun.is_over) {
      continue;  // nobody needs them any more
    }
    ADAMANT_RETURN_IF_ERROR(others.status());
    for (const std::string& other : *others) {
      Judge(other, kOtherData, comparison.accept_changes, comparison.resumption);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Resumption> CompareWithStart(const v1::TrainingJob& job,
                                            const RunPaths& paths,
                                            bool accept_changes) {
  const Begun begun = ReadBegun(job, paths);
  Comparison comparison{.job = job,
                        .paths = paths,
                        .begun = begun,
                        .accept_changes = accept_changes || begun.is_over};
  ADAMANT_RETURN_IF_ERROR(CompareAge(comparison));
  ADAMANT_RETURN_IF_ERROR(CompareSize(comparison));
  ADAMANT_RETURN_IF_ERROR(CompareManifests(comparison));
  ADAMANT_RETURN_IF_ERROR(CompareFiles(comparison));
  return std::move(comparison.resumption);
}

absl::StatusOr<std::vector<std::string>> WhatDoesNotFit(
    const v1::TrainingJob& began,
    const v1::TrainingJob& job,
    const std::vector<controller::DataFile>& known) {
  std::vector<std::string> lines;
  for (const job::FieldChange& change : job::ChangesBetween(began, job)) {
    if (const Rule rule = RuleOf(change); rule.answer == Answer::kRefused) {
      lines.push_back(Refusal(job::Format(change), rule.why));
    }
  }
  const v1::Data& data = job.spec().data();
  ADAMANT_ASSIGN_OR_RETURN(const auto train, OtherFiles(data.train(), "train", known));
  ADAMANT_ASSIGN_OR_RETURN(const auto validation,
                           OtherFiles(data.validation(), "validation", known));
  lines.insert(lines.end(), train.begin(), train.end());
  lines.insert(lines.end(), validation.begin(), validation.end());
  return lines;
}

bool IsOver(const v1::TrainingJob& job, const RunPaths& paths) {
  return ReadBegun(job, paths).is_over;
}

bool IsOver(const RunManifest& manifest, const RunPaths& paths) {
  if (manifest.job == nullptr) {
    return false;
  }
  if (manifest.problems.empty()) {
    return IsOver(*manifest.job, paths);
  }
  const bool is_known = std::ranges::none_of(manifest.problems, [](const job::Diagnostic& problem) {
    return IsWithin(problem.field_path, kRunPolicy);
  });
  if (!is_known || manifest.draft == nullptr) {
    return false;
  }
  // Of what was taken instead all fits what is stored.
  v1::TrainingJob wanted = *manifest.job;
  v1::RunPolicy& policy = *wanted.mutable_spec()->mutable_run_policy();
  const v1::RunPolicy& draft = manifest.draft->spec().run_policy();
  policy.set_epochs(draft.epochs());
  policy.clear_target_accuracy();
  if (draft.has_target_accuracy()) {
    policy.set_target_accuracy(draft.target_accuracy());
  }
  return IsOver(wanted, paths);
}

absl::StatusOr<std::unique_ptr<v1::TrainingJob>> ReadStart(const RunPaths& paths,
                                                           job::DataReading reading) {
  const std::filesystem::path path = paths.started();
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    return nullptr;
  }
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  job::ParseResult started = job::ParseJob(text, path.string(), reading);
  if (started.job == nullptr || IsDamaged(text)) {
    const std::string problem = started.job == nullptr
                                    ? job::Format(started.problems.front())
                                    : path.string() + ": it is not as it was written";
    return absl::DataLossError(problem +
                               "; without this file, --accept-changes lets the run go on as " +
                               paths.job().string() + " says");
  }
  return std::move(started.job);
}

RunManifest ReadRunManifest(const RunPaths& paths, job::DataReading reading) {
  job::ParseResult own = job::LoadJob(paths.job(), reading, Pipes::kRefused);
  RunManifest manifest{.job = std::move(own.job),
                       .problems = std::move(own.problems),
                       .file = paths.job(),
                       .draft = std::move(own.draft)};
  const bool only_fields = std::ranges::none_of(
      manifest.problems, [](const job::Diagnostic& problem) { return problem.field_path.empty(); });
  if (manifest.job == nullptr && only_fields) {
    if (auto started = ReadStart(paths, reading); started.ok() && *started != nullptr) {
      manifest.job = *std::move(started);
      manifest.file = paths.started();
    }
  }
  return manifest;
}

std::string NotTaken(const RunManifest& manifest) {
  return manifest.problems.empty()
             ? ""
             : job::Format(manifest.problems.front()) + "; " + manifest.file.string() +
                   " is taken, with which the run was started";
}

std::string NothingTaken(const v1::TrainingJob& job,
                         const RunPaths& paths,
                         const std::vector<std::string>& changes) {
  std::string all;
  for (const std::string& change : changes) {
    all += (all.empty() ? "" : "; ") + change;
  }
  return "the run has succeeded, and of what has changed in its job.yaml or its data nothing is "
         "taken: it trains on only with more spec.runPolicy.epochs" +
         EpochsNow(job, paths) + ". Changed: " + all;
}

std::string NoEffect(const v1::TrainingJob& job,
                     const RunPaths& paths,
                     const std::vector<std::string>& changes) {
  const bool any = std::ranges::any_of(changes, [](const std::string& change) {
    return change.starts_with("spec.") && !IsWithin(FieldOf(change), kRunPolicy);
  });
  return any ? "all epochs of the run are trained, and what has changed has no effect on its "
               "model: it trains on only with more spec.runPolicy.epochs" +
                   EpochsNow(job, paths)
             : "";
}

absl::StatusOr<bool> BringBackManifests(const v1::TrainingJob& job, const RunPaths& paths) {
  bool any = false;
  for (const std::filesystem::path& path : {paths.job(), paths.started()}) {
    if (std::error_code error; !std::filesystem::exists(path, error) && !error) {
      const std::string text = job::ToYaml(job);
      ADAMANT_RETURN_IF_ERROR(
          WriteFileAtomically(path, path == paths.started() ? Checked(text) : text));
      any = true;
    }
  }
  return any;
}

absl::Status StoreStart(const v1::TrainingJob& job, const RunPaths& paths) {
  const std::string text = Checked(job::ToYaml(job));
  const absl::StatusOr<std::string> stored = ReadFile(paths.started(), kMaxBytes);
  return stored.ok() && *stored == text ? absl::OkStatus()
                                        : WriteFileAtomically(paths.started(), text);
}

}  // namespace adamant::local
