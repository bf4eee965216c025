#pragma once

#include <nlohmann/json_fwd.hpp>

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
}  // namespace google::protobuf

// What a schema cannot say, as `x-kubernetes-validations`. Source of the language: CEL with the
// libraries of Kubernetes 1.30.
namespace adamant::kube {

/// Rules of a message: its oneofs, its `when` rules, its checks, and those that keep fields from
/// changing: where some may, and in a `frozen` message, none of whose fields may. An empty list if
/// there are none.
nlohmann::ordered_json MessageRules(const google::protobuf::Descriptor& type, bool frozen);

/// Returns true if rules of its own keep what is in the field from changing, and name what changed.
bool HasRulesWithin(const google::protobuf::FieldDescriptor& field);

/// The range of a quantity or duration, and the fractional bounds of a real, which the API server's
/// schema cuts to whole numbers when it compares them with one.
nlohmann::ordered_json RangeRules(const google::protobuf::FieldDescriptor& field);

/// Returns true if a field of the message, or of one within it, may change.
bool MayChange(const google::protobuf::Descriptor& type);

/// The notation of a quantity or duration, as a regular expression for the whole text.
const char* NotationOf(const google::protobuf::FieldDescriptor& field);

}  // namespace adamant::kube
