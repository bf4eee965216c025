#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace google::protobuf {
class Descriptor;
class EnumDescriptor;
class EnumValueDescriptor;
class FieldDescriptor;
class Message;
class OneofDescriptor;
}  // namespace google::protobuf
namespace adamant::v1 {
class FieldRules;
}

// How job.proto reads as a manifest: names, value types and the rules of schema.proto.
namespace adamant::job {

/// "spec" and "model" make "spec.model"; "" and "spec" make "spec". Names with other characters
/// than those of field names and labels are quoted.
std::string FieldPath(std::string_view parent, std::string_view field);

/// "layers" and 2 make "layers[2]".
std::string ElementPath(std::string_view list, std::size_t index);

/// The rules of a field; all empty if it has none.
const v1::FieldRules& RulesOf(const google::protobuf::FieldDescriptor& field);

/// Returns whether the manifest must give a member of the oneof.
bool IsRequired(const google::protobuf::OneofDescriptor& oneof);

/// Returns an enum value as the manifest writes it: "MaxPool" for KIND_MAX_POOL of Kind.
std::string EnumText(const google::protobuf::EnumValueDescriptor& value);

/// The values a manifest may write (the unspecified one is none of them).
std::vector<const google::protobuf::EnumValueDescriptor*> EnumValues(
    const google::protobuf::EnumDescriptor& type);
std::vector<std::string> EnumTexts(const google::protobuf::EnumDescriptor& type);

/// Returns whether the field holds whatever a manifest gives (google.protobuf.Struct).
bool IsOpen(const google::protobuf::FieldDescriptor& field);

/// Returns whether the field is a message of the schema, or a list of them.
bool IsMessage(const google::protobuf::FieldDescriptor& field);

/// Type of what a manifest writes as one value.
enum class ScalarType { kBool, kInteger, kReal, kBytes, kDuration, kText, kEnum };

/// The type of a field, or of the elements of a list; nullopt for messages.
std::optional<ScalarType> ScalarTypeOf(const google::protobuf::FieldDescriptor& field);

/// One value. Bytes are integers.
using Scalar = std::variant<bool,
                            std::int64_t,
                            double,
                            std::chrono::nanoseconds,
                            std::string,
                            const google::protobuf::EnumValueDescriptor*>;

/// Characters of a quantity or duration that a manifest may write.
inline constexpr std::size_t kLongestNotation = 64;

/// Reads the notation of `type`, which is none of text and enum.
std::optional<Scalar> ParseScalar(ScalarType type, std::string_view text);

/// Returns whether a value lies in the range of the rules. Texts, bools and enums always do.
bool InRange(const v1::FieldRules& rules, ScalarType type, const Scalar& value);

/// "1 to 1024", "above 0, at most 1"; "" if there is no range.
std::string RangeText(const v1::FieldRules& rules);

/// A field's `when` rule, read.
struct Condition {
  const google::protobuf::FieldDescriptor* selector;  ///< the enum field that it looks at
  std::vector<std::string> values;                    ///< what that must be one of
};

/// The `when` rule of a field; nullopt if it has none.
std::optional<Condition> ConditionOf(const google::protobuf::FieldDescriptor& field);

/// Returns whether a field's `when` rule holds (it does if there is none); nullopt while the field
/// that it looks at is not set.
std::optional<bool> Applies(const google::protobuf::Message& message,
                            const google::protobuf::FieldDescriptor& field);

/// Returns whether the message has the field: it is set, or not empty.
bool IsSet(const google::protobuf::Message& message,
           const google::protobuf::FieldDescriptor& field);

/// Sets the field, or appends to it if it is a list. The value has the field's type; one of an
/// unsigned field is not negative.
void Store(google::protobuf::Message& message,
           const google::protobuf::FieldDescriptor& field,
           const Scalar& value);

/// The value of a field that is set and no message but a duration, or of element `index` of a list.
Scalar Load(const google::protobuf::Message& message,
            const google::protobuf::FieldDescriptor& field,
            int index = 0);

}  // namespace adamant::job
