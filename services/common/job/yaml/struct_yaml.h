#pragma once

#include <string>

#include "services/common/job/yaml/yaml_tree.h"

namespace google::protobuf {
class Struct;
}

// Parts of a manifest that the schema leaves open: pods' specs.
namespace adamant::job {

/// Fills `open` from a map. Values without quotes are null, true, false, numbers (octal with a
/// leading 0, as kubectl reads them), else texts. What was refused is left out.
void DecodeStruct(const YamlNode& map, google::protobuf::Struct& open);

/// The map in block style, keys sorted, after "key:" on a line of its own level `level - 1`: begins
/// with a line break, or is " {}".
std::string StructYaml(const google::protobuf::Struct& open, int level);

}  // namespace adamant::job
