#include "services/common/job/job.h"

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/files.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/decode.h"
#include "services/common/job/yaml/defaults.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/yaml_tree.h"

namespace adamant::job {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

/// The folder of `file_name`, absolute.
std::filesystem::path FolderOf(const std::string& file_name) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(file_name, error);
  return error ? std::filesystem::path() : absolute.parent_path();
}

/// Decodes, completes and checks.
void Build(const YamlNode& root,
           DataPlace place,
           const std::string& file_name,
           v1::TrainingJob& job,
           Problems& problems) {
  Locations given;
  given.emplace("", Position{1, 1});
  DecodeMessage(root, "", job, given, problems);
  if (root.kind != YamlNode::Kind::kMap) {
    return;
  }
  ApplyDefaults(job, given);
  CheckRules(job, given, problems);
  if (!job.has_spec()) {
    return;
  }
  v1::JobSpec& spec = *job.mutable_spec();
  ConnectLayers(spec, given);
  CompleteServers(spec, given);
  CompleteOptimiser(spec, given);
  if (place != DataPlace::kElsewhere) {
    ResolvePaths(spec, FolderOf(file_name));
  }
  const std::optional<model::Graph> graph = CheckModel(job, given, problems);
  const model::Graph* const net = graph ? &*graph : nullptr;
  const std::optional<std::int64_t> examples = CheckData(spec, place, net, given, problems);
  CheckServers(spec, given, problems);
  CheckPods(spec, given, problems);
  CheckStart(spec, place, given, problems);
  CheckRun(spec, net, examples, given, problems);
}

DataPlace PlaceOf(DataReading reading) {
  switch (reading) {
    case DataReading::kNone:
      return DataPlace::kHereUnread;
    case DataReading::kValidation:
      return DataPlace::kHereValidation;
    case DataReading::kLabels:
      return DataPlace::kHere;
    case DataReading::kWhole:
      return DataPlace::kHereWhole;
  }
  return DataPlace::kHere;
}

ParseResult Result(std::unique_ptr<v1::TrainingJob> job, Problems& problems) {
  ParseResult result;
  (problems.empty() ? result.job : result.draft) = std::move(job);
  result.problems = problems.Take();
  return result;
}

}  // namespace

ParseResult::ParseResult() = default;
ParseResult::~ParseResult() = default;
ParseResult::ParseResult(ParseResult&&) noexcept = default;
ParseResult& ParseResult::operator=(ParseResult&&) noexcept = default;

ParseResult ParseJob(std::string_view yaml, const std::string& file_name, DataReading reading) {
  Problems problems(file_name);
  auto job = std::make_unique<v1::TrainingJob>();
  if (const std::optional<YamlNode> root = ReadYaml(yaml, problems)) {
    Build(*root, PlaceOf(reading), file_name, *job, problems);
  }
  return Result(std::move(job), problems);
}

ParseResult ParseObject(const YamlNode& object, Problems& problems) {
  auto job = std::make_unique<v1::TrainingJob>();
  Build(object, DataPlace::kElsewhere, "", *job, problems);
  return Result(std::move(job), problems);
}

std::vector<Diagnostic> CheckExamples(const v1::TrainingJob& job, std::int64_t examples) {
  Problems problems("");
  CheckRun(job.spec(), nullptr, examples, {}, problems);
  return problems.Take();
}

ParseResult LoadJob(const std::filesystem::path& path, DataReading reading, Pipes pipes) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes, pipes);
  if (text.ok()) {
    return ParseJob(*text, path.string(), reading);
  }
  Problems problems(path.string());
  std::string message(text.status().message());
  if (const std::string file = path.string() + ": "; message.starts_with(file)) {
    message.erase(0, file.size());  // the problem names it
  } else if (const std::size_t name = message.find(" " + file); name != std::string::npos) {
    message.erase(name, file.size() - 1);  // "cannot open PATH: why"
  }
  problems.Add({}, "", std::move(message));
  ParseResult result;
  result.problems = problems.Take();
  return result;
}

}  // namespace adamant::job
