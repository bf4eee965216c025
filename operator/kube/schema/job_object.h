#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "services/common/job/job.h"

namespace adamant::v1 {
class ShardMap;
class TrainingJobStatus;
}  // namespace adamant::v1

// The custom resources as the API hands them out.
namespace adamant::kube {

inline constexpr char kGroup[] = "adamant.dev";
inline constexpr char kVersion[] = "v1alpha1";

/// Reads a TrainingJob as `adamant validate` reads its manifest: the same defaults, checks, field
/// paths and messages, without lines. What Kubernetes adds to metadata, and the status, are passed
/// over. The data is not looked at: its paths are those of the data servers' containers or on a
/// claim.
/// Threads: any.
job::ParseResult ReadJob(const nlohmann::json& object);

/// Reads what is known of an object's "status"; a field that is wrong is as good as absent, and is
/// named. Errors: InvalidArgument.
absl::Status ReadStatus(const nlohmann::json& object, v1::TrainingJobStatus& status);

/// Reads a ShardMap without its metadata.
/// Errors: InvalidArgument naming the fields that are wrong.
absl::Status ReadShardMap(const nlohmann::json& object, v1::ShardMap& map);

/// A ShardMap of this name and namespace; the caller adds owner and labels.
nlohmann::json ShardMapObject(const v1::ShardMap& map,
                              const std::string& name,
                              const std::string& name_space);

}  // namespace adamant::kube
