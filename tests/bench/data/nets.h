#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/model/model.h"

namespace adamant::bench {

/// The net that `name` means: a reference net, or the net of the job in the file of that name,
/// whose data is not looked at. Errors: InvalidArgument with every problem of the file.
absl::StatusOr<model::Net> LoadNet(const std::string& name);

/// The graph for other programs, layer by layer in the order in which they run.
nlohmann::json Describe(const model::Graph& graph);

}  // namespace adamant::bench
