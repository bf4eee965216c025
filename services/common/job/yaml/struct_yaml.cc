#include "services/common/job/yaml/struct_yaml.h"

#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <map>

#include "services/common/job/yaml/scalars.h"
#include "services/common/job/yaml/yaml_text.h"

namespace adamant::job {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

/// "0644", which YAML 1.1 takes for octal.
bool IsOctal(const std::string& text) {
  return text.size() > 1 && text.front() == '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
}

void DecodeScalar(const YamlNode& node, Value& value) {
  value.set_string_value(node.text);  // unless it is something else
  if (node.quoted) {
    return;
  }
  if (node.text == "true" || node.text == "false") {
    value.set_bool_value(node.text == "true");
  } else if (IsOctal(node.text)) {
    double number = 0;
    for (const char digit : node.text) {
      number = number * 8 + (digit - '0');
    }
    value.set_number_value(number);
  } else if (const std::optional<double> number = ParseReal(node.text)) {
    value.set_number_value(*number);
  }
}

void DecodeValue(const YamlNode& node, Value& value) {
  switch (node.kind) {
    case YamlNode::Kind::kMap:
      return DecodeStruct(node, *value.mutable_struct_value());
    case YamlNode::Kind::kList:
      value.mutable_list_value();
      for (const YamlNode& item : node.items) {
        DecodeValue(item, *value.mutable_list_value()->add_values());
      }
      return;
    case YamlNode::Kind::kScalar:
      return DecodeScalar(node, value);
    case YamlNode::Kind::kNull:
    case YamlNode::Kind::kRefused:
      value.set_null_value(google::protobuf::NULL_VALUE);
  }
}

std::string ValueYaml(const Value& value, int level);

std::string ListYaml(const ListValue& list, int level) {
  if (list.values().empty()) {
    return " []\n";
  }
  std::string text = "\n";
  for (const Value& item : list.values()) {
    text.append(2 * static_cast<std::size_t>(level), ' ');
    text += "-" + ValueYaml(item, level + 1);
  }
  return text;
}

std::string ValueYaml(const Value& value, int level) {
  switch (value.kind_case()) {
    case Value::kStructValue:
      return StructYaml(value.struct_value(), level);
    case Value::kListValue:
      return ListYaml(value.list_value(), level);
    case Value::kBoolValue:
      return value.bool_value() ? " true\n" : " false\n";
    case Value::kNumberValue:
      return " " + FormatReal(value.number_value()) + "\n";
    case Value::kStringValue:
      return " " + YamlText(value.string_value()) + "\n";
    case Value::kNullValue:
    case Value::KIND_NOT_SET:
      break;
  }
  return " null\n";
}

}  // namespace

void DecodeStruct(const YamlNode& map, Struct& open) {
  for (const YamlEntry& entry : map.entries) {
    DecodeValue(entry.value, (*open.mutable_fields())[entry.key]);
  }
}

std::string StructYaml(const Struct& open, int level) {
  if (open.fields().empty()) {
    return " {}\n";
  }
  std::string text = "\n";
  const std::map<std::string, Value> sorted(open.fields().begin(), open.fields().end());
  for (const auto& [key, value] : sorted) {
    text.append(2 * static_cast<std::size_t>(level), ' ');
    text += YamlText(key) + ":" + ValueYaml(value, level + 1);
  }
  return text;
}

}  // namespace adamant::job
