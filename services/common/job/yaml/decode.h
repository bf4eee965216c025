#pragma once

#include <string>

#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/yaml_tree.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace adamant::job {

/// Fills `message` from `node`, the map at `path`. Reports unknown fields, wrong types, values out
/// of range or of the wrong form, and two members of one oneof; what is wrong stays unset. Adds
/// every field that the manifest gives to `given`, right or wrong.
void DecodeMessage(const YamlNode& node,
                   const std::string& path,
                   google::protobuf::Message& message,
                   Locations& given,
                   Problems& problems);

/// Sets a field to a default from the schema.
void StoreDefault(google::protobuf::Message& message,
                  const google::protobuf::FieldDescriptor& field,
                  const std::string& yaml);

}  // namespace adamant::job
