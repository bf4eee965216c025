#pragma once

#include <nlohmann/json_fwd.hpp>

namespace google::protobuf {
class Descriptor;
}
namespace adamant::job {
class Comments;
}

namespace adamant::kube {

/// The schema of a message as the `openAPIV3Schema` of a custom resource has it (structural, with
/// CEL rules for what a schema cannot say): what the API server then accepts is what the parser of
/// manifests accepts, but for what only the parser can see. Defaults are those that hold whatever
/// else is given. Lists and texts have an upper size, so that the API server can tell that the
/// rules are cheap.
nlohmann::ordered_json OpenApi(const google::protobuf::Descriptor& type,
                               const job::Comments& comments);

}  // namespace adamant::kube
