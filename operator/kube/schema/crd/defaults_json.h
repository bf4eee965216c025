#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace google::protobuf {
class FieldDescriptor;
}

namespace adamant::kube {

/// The default of a field that holds whatever else is given; of a message with everything in it,
/// as the API server checks defaults without completing them. Nullopt if there is none; the parser
/// of manifests adds those that depend on other fields.
std::optional<nlohmann::ordered_json> DefaultJson(const google::protobuf::FieldDescriptor& field);

}  // namespace adamant::kube
