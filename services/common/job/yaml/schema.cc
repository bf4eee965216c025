#include "services/common/job/yaml/schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <sstream>

#include "proto/adamant/v1/schema.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/scalars.h"

namespace adamant::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Duration;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::string UpperSnake(std::string_view camel) {
  std::string snake;
  for (const char c : camel) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0 && !snake.empty()) {
      snake += '_';
    }
    snake += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return snake;
}

/// A number for comparison with the bounds of a range.
double Magnitude(const Scalar& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* duration = std::get_if<std::chrono::nanoseconds>(&value)) {
    return static_cast<double>(duration->count());
  }
  return std::get<double>(value);
}

bool IsDuration(const FieldDescriptor& field) {
  return field.message_type() == Duration::descriptor();
}

Scalar LoadDuration(const Message& message) {
  const auto& duration = static_cast<const Duration&>(message);
  return std::chrono::nanoseconds(duration.seconds() * kNanosecondsPerSecond + duration.nanos());
}

void StoreDuration(Message& message, std::chrono::nanoseconds value) {
  auto& duration = static_cast<Duration&>(message);
  duration.set_seconds(value.count() / kNanosecondsPerSecond);
  duration.set_nanos(static_cast<std::int32_t>(value.count() % kNanosecondsPerSecond));
}

void Append(Message& message, const FieldDescriptor& field, const Scalar& value) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.AddInt64(&message, &field, std::get<std::int64_t>(value));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.AddString(&message, &field, std::get<std::string>(value));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.AddEnum(&message, &field, std::get<const EnumValueDescriptor*>(value));
    default:
      ADAMANT_CHECK(false, "a list type that the schema does not use");
  }
}

}  // namespace

std::string FieldPath(std::string_view parent, std::string_view field) {
  constexpr std::size_t kLongest = 64;
  const bool plain = !field.empty() && field.size() <= kLongest &&
                     std::all_of(field.begin(), field.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                              c == '-' || c == '.' || c == '/';
                     });
  std::string path(parent);
  path += parent.empty() ? "" : ".";
  return plain ? path.append(field) : path + Quote(field);
}

std::string ElementPath(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

const v1::FieldRules& RulesOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::rules);
}

bool IsRequired(const google::protobuf::OneofDescriptor& oneof) {
  return oneof.options().GetExtension(v1::one_of).required();
}

std::string EnumText(const EnumValueDescriptor& value) {
  const std::string_view bare =
      std::string_view(value.name()).substr(UpperSnake(value.type()->name()).size() + 1);
  std::string text;
  bool first_of_word = true;
  for (const char c : bare) {
    if (c != '_') {
      text += first_of_word ? c : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    first_of_word = c == '_';
  }
  return text;
}

std::vector<const EnumValueDescriptor*> EnumValues(const EnumDescriptor& type) {
  std::vector<const EnumValueDescriptor*> values;
  for (int i = 1; i < type.value_count(); ++i) {
    values.push_back(type.value(i));
  }
  return values;
}

std::vector<std::string> EnumTexts(const EnumDescriptor& type) {
  std::vector<std::string> texts;
  for (const EnumValueDescriptor* value : EnumValues(type)) {
    texts.push_back(EnumText(*value));
  }
  return texts;
}

bool IsOpen(const FieldDescriptor& field) {
  return field.message_type() == google::protobuf::Struct::descriptor();
}

bool IsMessage(const FieldDescriptor& field) {
  return !ScalarTypeOf(field) && !field.is_map() && !IsOpen(field);
}

std::optional<ScalarType> ScalarTypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return ScalarType::kBool;
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return RulesOf(field).bytes() ? ScalarType::kBytes : ScalarType::kInteger;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ScalarType::kReal;
    case FieldDescriptor::CPPTYPE_STRING:
      return ScalarType::kText;
    case FieldDescriptor::CPPTYPE_ENUM:
      return ScalarType::kEnum;
    default:
      return IsDuration(field) ? std::optional(ScalarType::kDuration) : std::nullopt;
  }
}

std::optional<Scalar> ParseScalar(ScalarType type, std::string_view text) {
  switch (type) {
    case ScalarType::kBool:
      return text == "true"    ? std::optional<Scalar>(true)
             : text == "false" ? std::optional<Scalar>(false)
                               : std::nullopt;
    case ScalarType::kInteger:
      return ParseInteger(text);
    case ScalarType::kReal:
      return ParseReal(text);
    case ScalarType::kBytes:
      return ParseBytes(text);
    case ScalarType::kDuration:
      return ParseDuration(text);
    case ScalarType::kText:
    case ScalarType::kEnum:
      break;
  }
  ADAMANT_CHECK(false, "texts and enums have no notation of their own");
}

bool InRange(const v1::FieldRules& rules, ScalarType type, const Scalar& value) {
  const auto beyond = [&](const std::string& bound, auto compare) {
    if (bound.empty()) {
      return false;
    }
    const std::optional<Scalar> limit = ParseScalar(type, bound);
    ADAMANT_CHECK(limit.has_value(), "a bound in the schema has the field's notation");
    return compare(Magnitude(value), Magnitude(*limit));
  };
  return !beyond(rules.at_least(), std::less<>()) && !beyond(rules.above(), std::less_equal<>()) &&
         !beyond(rules.at_most(), std::greater<>()) &&
         !beyond(rules.below(), std::greater_equal<>());
}

std::string RangeText(const v1::FieldRules& rules) {
  if (!rules.at_least().empty() && !rules.at_most().empty()) {
    return rules.at_least() + " to " + rules.at_most();
  }
  std::vector<std::string> bounds;
  const auto add = [&](const char* words, const std::string& bound) {
    if (!bound.empty()) {
      bounds.push_back(words + bound);
    }
  };
  add("at least ", rules.at_least());
  add("above ", rules.above());
  add("at most ", rules.at_most());
  add("below ", rules.below());
  std::string text;
  for (const std::string& bound : bounds) {
    text += (text.empty() ? "" : ", ") + bound;
  }
  return text;
}

std::optional<Condition> ConditionOf(const FieldDescriptor& field) {
  if (RulesOf(field).when().empty()) {
    return std::nullopt;
  }
  std::istringstream when(RulesOf(field).when());
  std::string name;
  std::getline(when, name, ':');
  Condition condition{field.containing_type()->FindFieldByName(name), {}};
  ADAMANT_CHECK(condition.selector != nullptr, "`when` names a field of the message");
  for (std::string value; when >> value;) {
    condition.values.push_back(value);
  }
  return condition;
}

std::optional<bool> Applies(const Message& message, const FieldDescriptor& field) {
  const std::optional<Condition> condition = ConditionOf(field);
  if (!condition) {
    return true;
  }
  if (!IsSet(message, *condition->selector)) {
    return std::nullopt;
  }
  const Scalar chosen = Load(message, *condition->selector);
  const std::string text = EnumText(*std::get<const EnumValueDescriptor*>(chosen));
  return std::find(condition->values.begin(), condition->values.end(), text) !=
         condition->values.end();
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

void Store(Message& message, const FieldDescriptor& field, const Scalar& value) {
  if (field.is_repeated()) {
    return Append(message, field, value);
  }
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, &field, std::get<bool>(value));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(
          &message, &field, static_cast<std::int32_t>(std::get<std::int64_t>(value)));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, std::get<std::int64_t>(value));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(
          &message, &field, static_cast<std::uint32_t>(std::get<std::int64_t>(value)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(
          &message, &field, static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, &field, std::get<double>(value));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, std::get<std::string>(value));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnum(&message, &field, std::get<const EnumValueDescriptor*>(value));
    default:
      return StoreDuration(*reflection.MutableMessage(&message, &field),
                           std::get<std::chrono::nanoseconds>(value));
  }
}

Scalar Load(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& reflection = *message.GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return std::int64_t{reflection.GetInt32(message, &field)};
    case FieldDescriptor::CPPTYPE_INT64:
      return list ? reflection.GetRepeatedInt64(message, &field, index)
                  : reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::int64_t{reflection.GetUInt32(message, &field)};
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<std::int64_t>(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_STRING:
      return list ? reflection.GetRepeatedString(message, &field, index)
                  : reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return list ? reflection.GetRepeatedEnum(message, &field, index)
                  : reflection.GetEnum(message, &field);
    default:
      return LoadDuration(reflection.GetMessage(message, &field));
  }
}

}  // namespace adamant::job
