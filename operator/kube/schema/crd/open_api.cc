#include "operator/kube/schema/crd/open_api.h"

#include <google/protobuf/descriptor.h>

#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/kube/schema/crd/cel_rules.h"
#include "operator/kube/schema/crd/defaults_json.h"
#include "proto/adamant/v1/schema.pb.h"
#include "services/common/job/yaml/comments.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/text_shapes.h"

namespace adamant::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using job::ScalarType;
using Json = nlohmann::ordered_json;

/// A bound of a range as a number.
Json BoundJson(ScalarType type, const std::string& bound) {
  const job::Scalar value = *job::ParseScalar(type, bound);
  return type == ScalarType::kInteger ? Json(std::get<std::int64_t>(value))
                                      : Json(std::get<double>(value));
}

void AddRange(const FieldDescriptor& field, ScalarType type, Json& schema) {
  const v1::FieldRules& rules = job::RulesOf(field);
  if (!rules.at_least().empty()) {
    schema["minimum"] = BoundJson(type, rules.at_least());
  } else if (!rules.above().empty()) {
    schema["minimum"] = BoundJson(type, rules.above());
    schema["exclusiveMinimum"] = true;
  } else if (type == ScalarType::kInteger) {
    schema["minimum"] = 0;  // what has no rules counts something
  }
  if (!rules.at_most().empty()) {
    schema["maximum"] = BoundJson(type, rules.at_most());
  } else if (!rules.below().empty()) {
    schema["maximum"] = BoundJson(type, rules.below());
    schema["exclusiveMaximum"] = true;
  }
}

Json ShapeJson(v1::TextFormat format) {
  const job::TextShape& shape = job::ShapeOf(format);
  Json schema = {{"type", "string"}};
  if (format == v1::TEXT_FORMAT_TIME) {
    schema["format"] = "date-time";
  } else if (!shape.pattern.empty()) {
    schema["pattern"] = "^(" + std::string(shape.pattern) + ")$";
  }
  if (shape.shortest > 0) {
    schema["minLength"] = shape.shortest;
  }
  schema["maxLength"] = shape.longest;
  return schema;
}

Json TextJson(const v1::FieldRules& rules) {
  if (rules.allowed().empty()) {
    return ShapeJson(rules.format());
  }
  Json schema = {{"type", "string"}, {"enum", Json::array()}};
  for (const std::string& text : rules.allowed()) {
    schema["enum"].push_back(text);
  }
  return schema;
}

/// One value of a field, or of a list.
Json ScalarJson(const FieldDescriptor& field, ScalarType type) {
  Json schema;
  switch (type) {
    case ScalarType::kBool:
      return {{"type", "boolean"}};
    case ScalarType::kInteger:
      schema = {{"type", "integer"},
                {"format", field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ? "int32" : "int64"}};
      AddRange(field, type, schema);
      return schema;
    case ScalarType::kReal:
      schema = {{"type", "number"}};
      AddRange(field, type, schema);
      break;
    case ScalarType::kBytes:
      schema = {{"x-kubernetes-int-or-string", true},
                {"pattern", NotationOf(field)},
                {"maxLength", job::kLongestNotation}};
      break;
    case ScalarType::kDuration:
      schema = {
          {"type", "string"}, {"pattern", NotationOf(field)}, {"maxLength", job::kLongestNotation}};
      break;
    case ScalarType::kText:
      return TextJson(job::RulesOf(field));
    case ScalarType::kEnum:
      return {{"type", "string"}, {"enum", job::EnumTexts(*field.enum_type())}};
  }
  if (Json rules = RangeRules(field); !rules.empty()) {
    schema["x-kubernetes-validations"] = std::move(rules);
  }
  return schema;
}

/// Whether nothing within the field may change, where its message keeps what may not.
bool IsFrozen(const FieldDescriptor& field) {
  return job::RulesOf(field).change() == v1::CHANGE_NEVER && HasRulesWithin(field) &&
         !MayChange(*field.message_type());
}

/// A comment as a sentence: those behind fields are none.
std::string Sentence(std::string comment) {
  if (!comment.empty()) {
    comment.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(comment.front())));
    comment += comment.back() == '.' ? "" : ".";
  }
  return comment;
}

class Writer {
 public:
  explicit Writer(const job::Comments& comments) : comments_(comments) {}

  /// `frozen`: none of its fields may change.
  Json MessageJson(const Descriptor& type, bool frozen) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}};
    Json required = Json::array();
    const bool keeps = frozen || MayChange(type);  // what may not change in it, from changing
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      schema["properties"][field.json_name()] = FieldJson(field, keeps && IsFrozen(field));
      const v1::FieldRules& rules = job::RulesOf(field);
      if (rules.required() && rules.when().empty()) {
        required.push_back(field.json_name());
      }
    }
    if (!required.empty()) {
      schema["required"] = std::move(required);
    }
    if (Json rules = MessageRules(type, frozen); !rules.empty()) {
      schema["x-kubernetes-validations"] = std::move(rules);
    }
    return schema;
  }

 private:
  Json FieldJson(const FieldDescriptor& field, bool frozen) {
    Json schema = {{"description", Description(field)}};
    if (field.is_map()) {
      schema.update(MapJson(field));
    } else if (field.is_repeated()) {
      schema.update(ListJson(field));
    } else {
      schema.update(ValueJson(field, frozen));
    }
    if (std::optional<Json> value = DefaultJson(field)) {
      schema["default"] = *std::move(value);
    }
    return schema;
  }

  Json ValueJson(const FieldDescriptor& field, bool frozen) {
    if (const std::optional<ScalarType> type = job::ScalarTypeOf(field)) {
      return ScalarJson(field, *type);
    }
    if (job::IsOpen(field)) {
      return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    }
    return MessageJson(*field.message_type(), frozen);
  }

  Json ListJson(const FieldDescriptor& field) {
    const v1::FieldRules& rules = job::RulesOf(field);
    Json schema = {{"type", "array"}, {"x-kubernetes-list-type", "atomic"}};
    if (rules.elements() > 0) {
      schema["minItems"] = rules.elements();
      schema["maxItems"] = rules.elements();
    } else {
      if (rules.required()) {
        schema["minItems"] = 1;
      }
      schema["maxItems"] = rules.most_elements();
    }
    schema["items"] = ValueJson(field, false);  // the list is compared as a whole
    return schema;
  }

  static Json MapJson(const FieldDescriptor& field) {
    const v1::FieldRules& rules = job::RulesOf(field);
    return {{"type", "object"},
            {"maxProperties", rules.most_elements()},
            {"additionalProperties", ShapeJson(rules.format())}};
  }

  /// The comments of the field, of its type, and of the values that it can have.
  [[nodiscard]] std::string Description(const FieldDescriptor& field) const {
    std::string text = Sentence(comments_.Of(field));
    if (job::IsMessage(field)) {
      const std::string of_type = comments_.Of(*field.message_type());
      const bool repeats = of_type.starts_with(text.substr(0, text.size() - 1));
      text = repeats ? of_type : text + " " + of_type;
    }
    if (field.enum_type() != nullptr) {
      std::vector<std::string> meanings;
      for (const auto* value : job::EnumValues(*field.enum_type())) {
        meanings.push_back(job::EnumText(*value) + " (" + comments_.Of(*value) + ")");
      }
      text += " One of " + job::Join(meanings) + ".";
    }
    return text;
  }

  const job::Comments& comments_;
};

}  // namespace

Json OpenApi(const Descriptor& type, const job::Comments& comments) {
  return Writer(comments).MessageJson(type, false);
}

}  // namespace adamant::kube
