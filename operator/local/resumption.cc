#include "operator/local/resumption.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/changes.h"
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

}  // namespace

absl::StatusOr<Resumption> CompareWithStart(const v1::TrainingJob& job,
                                            const RunPaths& paths,
                                            bool accept_changes) {
  Resumption resumption;
  if (std::error_code error; !std::filesystem::exists(paths.started(), error)) {
    return resumption;
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
    const Rule rule = RuleOf(change);
    const std::string line = job::Format(change);
    if (rule.answer == Answer::kTaken || (rule.answer == Answer::kIfAccepted && accept_changes)) {
      resumption.taken.push_back(line);
    } else if (rule.answer == Answer::kIfAccepted) {
      resumption.refused.push_back(Refusal(line, "--accept-changes takes it", rule.why));
    } else {
      resumption.refused.push_back(Refusal(line, rule.why));
    }
  }
  return resumption;
}

absl::Status StoreStart(const v1::TrainingJob& job, const RunPaths& paths) {
  const std::string text = Checked(job::ToYaml(job));
  const absl::StatusOr<std::string> stored = ReadFile(paths.started(), kMaxBytes);
  return stored.ok() && *stored == text ? absl::OkStatus()
                                        : WriteFileAtomically(paths.started(), text);
}

}  // namespace adamant::local
