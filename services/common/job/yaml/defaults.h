#pragma once

#include "services/common/job/yaml/problems.h"

namespace google::protobuf {
class Message;
}

namespace adamant::job {

/// Gives every field that is absent its default from the schema, where its `when` rule holds, and
/// creates the messages that hold defaults. Fields in `given` stay as they are (what the manifest
/// gives wrongly is absent but no default takes its place).
void ApplyDefaults(google::protobuf::Message& job, const Locations& given);

/// Reports fields that are missing, given where their `when` rule does not hold, and oneofs without
/// a member. For a job with its defaults.
void CheckRules(const google::protobuf::Message& job, const Locations& given, Problems& problems);

}  // namespace adamant::job
