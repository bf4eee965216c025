#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace adamant::kube {

/// A JSON object as a YAML document for people: block style, keys in their order, long and
/// many-lined texts folded at 100 columns where they can be.
std::string ToYamlFile(const nlohmann::ordered_json& object);

}  // namespace adamant::kube
