#pragma once

#include <string>

#include "absl/status/status.h"
#include "services/common/dataset/idx.h"
#include "services/common/tensor/shape.h"

// What may be wrong with the files of a data source, in the same words whoever looks at them:
// `adamant validate` on one machine, a data server in a cluster.
namespace adamant::job {

/// Paths of the files of a data source, and how its problems call them.
struct IdxSource {
  dataset::IdxPaths paths;
  dataset::IdxPaths names;   ///< in place of the paths
  dataset::IdxPaths fields;  ///< of the manifest, below the source: "idx.images"
};

struct DataProblem {
  std::string field;
  std::string message;
};

/// "there is no file …" or alike; empty when `path`, called `name`, can be read.
std::string MissingFile(const std::string& path, const std::string& name);

/// Returns what an error of InspectIdx, CheckIdx or ReadIdx for the source's paths says.
DataProblem ProblemOf(const absl::Status& error, const IdxSource& source);

/// Says that images do not fit the net's input; empty when they do. `what`: "digits are".
std::string Misfit(const std::string& what, const Shape& image, const Shape& input);

/// The same for the source's files.
std::string Misfit(const IdxSource& source, const dataset::IdxInfo& info, const Shape& input);

}  // namespace adamant::job
