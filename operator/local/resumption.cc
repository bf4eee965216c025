#include "operator/local/resumption.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/core/actions.h"
#include "operator/core/state.h"
#include "operator/local/state_copies.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/changes.h"
#include "services/common/job/data_files.h"
#include "services/common/job/job.h"

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

bool IsWithin(std::string_view path, std::string_view rule) {
  return rule.empty() ||
         (path.starts_with(rule) && (path.size() == rule.size() || path[rule.size()] == '.'));
}

Rule RuleOf(const job::Change& change) {
  Rule found = kRules[0];
  for (const Rule& rule : kRules) {
    if (IsWithin(change.path, rule.path) && rule.path.size() >= found.path.size()) {
      found = rule;
    }
  }
  if (change.path.ends_with(".persistence.mode") &&
      (change.before == "None" || change.after == "None")) {
    found = {found.path, Answer::kRefused, "with None, checkpoints alone are stored"};
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

absl::Status CompareManifests(const v1::TrainingJob& job,
                              const RunPaths& paths,
                              bool accept_changes,
                              Resumption& resumption) {
  if (std::error_code error; !std::filesystem::exists(paths.started(), error)) {
    return absl::OkStatus();
  }
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(paths.started(), kMaxBytes));
  const job::ParseResult started =
      job::ParseJob(text, paths.started().string(), job::DataReading::kNone);
  if (started.job == nullptr || IsDamaged(text)) {
    const std::string problem = started.job == nullptr
                                    ? job::Format(started.problems.front())
                                    : paths.started().string() + ": it is not as it was written";
    return absl::DataLossError(problem + "; without this file the run goes on as " +
                               paths.job().string() + " says");
  }
  for (const job::Change& change : job::ChangesBetween(*started.job, job)) {
    Judge(job::Format(change), RuleOf(change), accept_changes, resumption);
  }
  return absl::OkStatus();
}

// The files that the job began with. None where the state is not there yet, or cannot be read: who
// runs the job says so, and its data servers compare, too.
std::vector<controller::DataFile> KnownFiles(const RunPaths& paths) {
  if (std::error_code error; !std::filesystem::exists(paths.controller(), error)) {
    return {};
  }
  const absl::StatusOr<StateCopies::Stored> stored =
      StateCopies::Read({paths.controller(), paths.controller_copy()});
  if (!stored.ok()) {
    return {};
  }
  const auto found = stored->snapshot.entries.find(controller::kStateKey);
  const absl::StatusOr<controller::JobState> state = found == stored->snapshot.entries.end()
                                                         ? absl::NotFoundError("no state")
                                                         : controller::DecodeState(found->second);
  return state.ok() ? state->data_files : std::vector<controller::DataFile>{};
}

absl::Status CompareData(const v1::TrainingJob& job,
                         const RunPaths& paths,
                         bool accept_changes,
                         Resumption& resumption) {
  const std::vector<controller::DataFile> known = KnownFiles(paths);
  const v1::Data& data = job.spec().data();
  for (const auto& [set, source] :
       {std::pair("train", &data.train()), std::pair("validation", &data.validation())}) {
    if (known.empty() || !source->has_idx()) {
      continue;
    }
    const dataset::IdxPaths files{.images = source->idx().images(),
                                  .labels = source->idx().labels()};
    ADAMANT_ASSIGN_OR_RETURN(
        const std::vector<job::DataFile> found,
        job::FingerprintFiles({.paths = files,
                               .names = files,
                               .fields = {.images = "idx.images", .labels = "idx.labels"}},
                              set));
    for (const job::DataFile& file : found) {
      const auto begun = std::ranges::find(known, file.field, &controller::DataFile::field);
      if (begun != known.end() && begun->fingerprint != file.fingerprint) {
        Judge(
            file.field + ": " + job::OtherFile(file.name), kOtherData, accept_changes, resumption);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Resumption> CompareWithStart(const v1::TrainingJob& job,
                                            const RunPaths& paths,
                                            bool accept_changes) {
  Resumption resumption;
  ADAMANT_RETURN_IF_ERROR(CompareManifests(job, paths, accept_changes, resumption));
  ADAMANT_RETURN_IF_ERROR(CompareData(job, paths, accept_changes, resumption));
  return resumption;
}

absl::Status StoreStart(const v1::TrainingJob& job, const RunPaths& paths) {
  const std::string text = Checked(job::ToYaml(job));
  const absl::StatusOr<std::string> stored = ReadFile(paths.started(), kMaxBytes);
  return stored.ok() && *stored == text ? absl::OkStatus()
                                        : WriteFileAtomically(paths.started(), text);
}

}  // namespace adamant::local
