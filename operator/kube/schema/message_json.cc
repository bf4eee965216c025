#include "operator/kube/schema/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "services/common/job/yaml/decode.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/scalars.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/yaml_tree.h"

namespace adamant::kube {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Struct;
using google::protobuf::Value;
using job::ScalarType;
using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 32;

Json ScalarJson(const job::Scalar& value, ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return std::get<bool>(value);
    case ScalarType::kInteger:
      return std::get<std::int64_t>(value);
    case ScalarType::kReal:
      return std::get<double>(value);
    case ScalarType::kBytes:
      return job::FormatBytes(std::get<std::int64_t>(value));
    case ScalarType::kDuration:
      return job::FormatDuration(std::get<std::chrono::nanoseconds>(value));
    case ScalarType::kText:
      return std::get<std::string>(value);
    case ScalarType::kEnum:
      break;
  }
  return job::EnumText(*std::get<const EnumValueDescriptor*>(value));
}

Json OpenJson(const Struct& open);

Json OpenJson(const Value& value) {
  switch (value.kind_case()) {
    case Value::kStructValue:
      return OpenJson(value.struct_value());
    case Value::kListValue: {
      Json list = Json::array();
      for (const Value& item : value.list_value().values()) {
        list.push_back(OpenJson(item));
      }
      return list;
    }
    case Value::kBoolValue:
      return value.bool_value();
    case Value::kNumberValue: {
      constexpr double kLargestWhole = 9007199254740992;  // beyond it, reals have gaps
      const double number = value.number_value();
      return number == std::floor(number) && std::abs(number) <= kLargestWhole
                 ? Json(static_cast<std::int64_t>(number))
                 : Json(number);
    }
    case Value::kStringValue:
      return value.string_value();
    case Value::kNullValue:
    case Value::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

Json OpenJson(const Struct& open) {
  Json object = Json::object();
  for (const auto& [key, value] : open.fields()) {
    object[key] = OpenJson(value);
  }
  return object;
}

Json MapJson(const Message& message, const FieldDescriptor& field) {
  Json map = Json::object();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    const Message& pair = message.GetReflection()->GetRepeatedMessage(message, &field, i);
    const job::Scalar key = job::Load(pair, *field.message_type()->map_key());
    map[std::get<std::string>(key)] =
        std::get<std::string>(job::Load(pair, *field.message_type()->map_value()));
  }
  return map;
}

Json ListJson(const Message& message, const FieldDescriptor& field) {
  Json list = Json::array();
  const std::optional<ScalarType> type = job::ScalarTypeOf(field);
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    list.push_back(
        type ? ScalarJson(job::Load(message, field, i), *type)
             : MessageJson(message.GetReflection()->GetRepeatedMessage(message, &field, i)));
  }
  return list;
}

Json FieldJson(const Message& message, const FieldDescriptor& field) {
  if (field.is_map()) {
    return MapJson(message, field);
  }
  if (field.is_repeated()) {
    return ListJson(message, field);
  }
  if (const std::optional<ScalarType> type = job::ScalarTypeOf(field)) {
    return ScalarJson(job::Load(message, field), *type);
  }
  const Message& child = message.GetReflection()->GetMessage(message, &field);
  return job::IsOpen(field) ? OpenJson(static_cast<const Struct&>(child)) : MessageJson(child);
}

job::YamlNode Leaf(job::YamlNode::Kind kind, std::string text, bool quoted) {
  job::YamlNode node;
  node.kind = kind;
  node.text = std::move(text);
  node.quoted = quoted;
  return node;
}

/// Builds the tree; `path` is the field's, for problems.
class Builder {
 public:
  explicit Builder(job::Problems& problems) : problems_(problems) {}

  job::YamlNode Build(const Json& json, const std::string& path, std::size_t depth) {
    if (json.is_null()) {
      return Leaf(job::YamlNode::Kind::kNull, "", false);
    }
    if (json.is_string()) {
      return Leaf(job::YamlNode::Kind::kScalar, json.get<std::string>(), true);
    }
    if (!json.is_structured()) {
      return Leaf(job::YamlNode::Kind::kScalar, json.dump(), false);
    }
    if (depth == kMaxDepth) {
      problems_.Add(
          {}, path, "nested too deep (allowed: " + std::to_string(kMaxDepth) + " levels)");
      return Leaf(job::YamlNode::Kind::kRefused, "", false);
    }
    return BuildInner(json, path, depth + 1);
  }

 private:
  job::YamlNode BuildInner(const Json& json, const std::string& path, std::size_t depth) {
    job::YamlNode node;
    if (json.is_array()) {
      node.kind = job::YamlNode::Kind::kList;
      for (const Json& item : json) {
        node.items.push_back(Build(item, job::ElementPath(path, node.items.size()), depth));
      }
      return node;
    }
    node.kind = job::YamlNode::Kind::kMap;
    for (const auto& [key, value] : json.items()) {
      node.entries.push_back(
          {.key = key, .at = {}, .value = Build(value, job::FieldPath(path, key), depth)});
    }
    return node;
  }

  job::Problems& problems_;
};

// JSON has no such number; the API refuses null where one belongs, and with it the whole object.
bool IsNotFinite(const Message& message, const FieldDescriptor& field) {
  return !field.is_repeated() && job::ScalarTypeOf(field) == ScalarType::kReal &&
         !std::isfinite(std::get<double>(job::Load(message, field)));
}

}  // namespace

Json MessageJson(const Message& message) {
  Json object = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const bool always = !field.is_repeated() && !field.has_presence();
    if ((always || job::IsSet(message, field)) && !IsNotFinite(message, field)) {
      object[field.json_name()] = FieldJson(message, field);
    }
  }
  return object;
}

absl::Status ReadMessage(const Json& object, Message& message) {
  job::Problems problems("");
  job::Locations given;
  job::DecodeMessage(ToNode(object, problems), "", message, given, problems);
  std::string text;
  for (const job::Diagnostic& problem : problems.Take()) {
    text += (text.empty() ? "" : "; ") + problem.field_path + ": " + problem.message;
  }
  return text.empty() ? absl::OkStatus() : absl::InvalidArgumentError(text);
}

job::YamlNode ToNode(const Json& json, job::Problems& problems) {
  return Builder(problems).Build(json, "", 0);
}

}  // namespace adamant::kube
