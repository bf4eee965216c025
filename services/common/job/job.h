#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/system/files.h"
#include "services/common/job/yaml/diagnostic.h"
#include "services/common/model/model.h"

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

/// A job, or everything that is wrong with its manifest.
struct ParseResult {
  ParseResult();
  ~ParseResult();
  ParseResult(ParseResult&&) noexcept;
  ParseResult& operator=(ParseResult&&) noexcept;

  std::unique_ptr<v1::TrainingJob> job;  ///< null exactly if there are problems
  std::vector<Diagnostic> problems;      ///< by line and column

  /// Of a manifest with problems what could be read, with defaults for the rest: not to be run.
  std::unique_ptr<v1::TrainingJob> draft;
};

/// Extent to which the data files that a manifest names are read to check them.
enum class DataReading {
  kNone,        ///< nothing: they need not be there
  kValidation,  ///< of the validation data headers and labels; those of training need not be there
  kLabels,      ///< the headers, and the labels
  kWhole,       ///< all, as training does: damage that only shows at the end of compressed files is
                ///< found
};

/// Reads a manifest of at most 1 MB: YAML (one document, no aliases, at most 32 deep), strict
/// against job.proto, with every default filled in, and checked as a whole: the net's shapes, the
/// data's headers against the net, limits. Relative paths of data start at the manifest's folder
/// and come out absolute. All problems are returned at once. A pipe is read unless it is refused,
/// as in the folder of a run.
/// Threads: any.
ParseResult LoadJob(const std::filesystem::path& path,
                    DataReading reading = DataReading::kLabels,
                    Pipes pipes = Pipes::kRead);

/// LoadJob for a text; `file_name` stands in the problems and its folder is where relative paths
/// start.
ParseResult ParseJob(std::string_view yaml,
                     const std::string& file_name,
                     DataReading reading = DataReading::kLabels);

struct YamlNode;
class Problems;

/// ParseJob for a tree that comes from somewhere else: an object of the Kubernetes API. The data is
/// not looked at, as it is where the data servers will run, and its paths stay as they are.
/// `problems` holds those of the tree itself, and is emptied into the result.
ParseResult ParseObject(const YamlNode& object, Problems& problems);

/// Returns what cannot be right about a valid job now that the number of its training examples is
/// known: LoadJob says it where it can look at the data.
std::vector<Diagnostic> CheckExamples(const v1::TrainingJob& job, std::int64_t examples);

/// The job as a manifest that ParseJob accepts, with every value it has: of a parsed job, defaults
/// included.
std::string ToYaml(const v1::TrainingJob& job);

/// The net of a job that came from LoadJob or ParseJob; it passes model::Check.
model::Net NetOf(const v1::TrainingJob& job);

}  // namespace adamant::job
