#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}
namespace adamant::job {
struct YamlNode;
class Problems;
}  // namespace adamant::job

// Messages of job.proto and resources.proto as JSON, in the notation of manifests.
namespace adamant::kube {

/// Every field that is set; numbers and bools that cannot be unset always.
nlohmann::json MessageJson(const google::protobuf::Message& message);

/// Fills `message` from an object that MessageJson has made, or the API server has checked.
/// Errors: InvalidArgument naming each field that is wrong; `message` then holds the others.
absl::Status ReadMessage(const nlohmann::json& object, google::protobuf::Message& message);

/// The same tree for the parser of manifests. What lies more than 32 levels deep is a problem.
job::YamlNode ToNode(const nlohmann::json& json, job::Problems& problems);

}  // namespace adamant::kube
