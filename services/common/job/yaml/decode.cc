#include "services/common/job/yaml/decode.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "proto/adamant/v1/schema.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/yaml/scalars.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/struct_yaml.h"
#include "services/common/job/yaml/text_shapes.h"

namespace adamant::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;

std::string Allowed(const std::string& what) { return " (allowed: " + what + ")"; }

std::string Elements(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " element" : " elements");
}

/// What was found where something else was expected.
std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kScalar:
      return (node.quoted ? "the text " : "") + Quote(node.text);
    case YamlNode::Kind::kNull:
    case YamlNode::Kind::kRefused:
      break;
  }
  return "nothing";
}

/// What programs that write YAML 1.1 make of an Off without quotes.
constexpr char kBooleanOff[] = "did you mean \"Off\"? Without quotes YAML 1.1 takes it for false";

bool IsBooleanOff(const YamlNode& node, const std::vector<std::string>& allowed) {
  return node.text == "false" && std::ranges::find(allowed, "Off") != allowed.end();
}

/// A number, quantity or duration as given, cut if it is absurdly long.
std::string Shown(const YamlNode& node) {
  constexpr std::size_t kLongest = 60;
  return node.text.size() > kLongest ? Quote(node.text) : node.text;
}

const char* ExpectedText(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "true or false";
    case ScalarType::kInteger:
      return "an integer";
    case ScalarType::kReal:
      return "a number";
    case ScalarType::kBytes:
      return "whole bytes such as 64Mi, 1G or 4096";
    case ScalarType::kDuration:
      return "a duration with its unit, such as 5s, 250ms or 1h30m";
    case ScalarType::kText:
      return "a text";
    case ScalarType::kEnum:
      return "a name";
  }
  return "";
}

/// Whether an unsigned field can hold the value.
bool FitsType(const FieldDescriptor& field, const Scalar& value) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    const auto number = std::get<std::int64_t>(value);
    return number >= 0 && number <= std::numeric_limits<std::uint32_t>::max();
  }
  return field.cpp_type() != FieldDescriptor::CPPTYPE_UINT64 || std::get<std::int64_t>(value) >= 0;
}

/// Whether a number that is not 0 is lost, or loses digits, among the floats of weights.
bool IsTiny(double value) {
  return value != 0 && std::abs(value) < double{std::numeric_limits<float>::min()};
}

/// One pass over a tree, filling messages.
class Decoder {
 public:
  Decoder(Locations& given, Problems& problems) : given_(given), problems_(problems) {}

  void DecodeMap(const YamlNode& node, const std::string& path, Message& message) {
    if (node.kind == YamlNode::Kind::kRefused) {
      return;
    }
    const std::vector<std::string> names = FieldNames(*message.GetDescriptor());
    if (node.kind != YamlNode::Kind::kMap) {
      problems_.Add(node.at,
                    path,
                    "expected a map with fields, found " + Describe(node) + Allowed(Join(names)));
      return;
    }
    for (const YamlEntry& entry : node.entries) {
      const std::string field_path = FieldPath(path, entry.key);
      const FieldDescriptor* field = FindField(*message.GetDescriptor(), entry.key);
      if (field == nullptr) {
        ReportUnknown(entry, path, names);
        continue;
      }
      const bool leaf = entry.value.kind == YamlNode::Kind::kScalar;
      given_.emplace(field_path, leaf ? entry.value.at : entry.at);
      if (OneofIsFree(*field, message, entry.at, field_path)) {
        DecodeValue(entry, *field, field_path, message);
      }
    }
  }

  /// Reads one value, or one element of a list, into `message`.
  void DecodeScalar(const YamlNode& node,
                    const FieldDescriptor& field,
                    const std::string& path,
                    Message& message) {
    if (node.kind == YamlNode::Kind::kRefused) {
      return;
    }
    const std::optional<Scalar> value = ReadScalar(node, field, path);
    if (value) {
      Store(message, field, *value);
    }
  }

  void DecodeList(const YamlNode& node,
                  const FieldDescriptor& field,
                  const std::string& path,
                  Message& message) {
    const v1::FieldRules& rules = RulesOf(field);
    const auto size = static_cast<int>(node.items.size());
    if (node.kind != YamlNode::Kind::kList) {
      problems_.Add(node.at, path, "expected a list, found " + Describe(node));
      return;
    }
    if (rules.elements() != 0 && size != rules.elements()) {
      problems_.Add(node.at,
                    path,
                    "the list has " + Elements(size) +
                        Allowed("exactly " + std::to_string(rules.elements())));
      return;
    }
    if (size == 0 && rules.required()) {
      problems_.Add(node.at, path, "the list is empty" + Allowed("at least 1 element"));
    }
    if (!SizeFits(node.items.size(), rules, node.at, path)) {
      return;
    }
    for (int i = 0; i < size; ++i) {
      const YamlNode& item = node.items[i];
      const std::string item_path = ElementPath(path, i);
      given_.emplace(item_path, item.at);
      if (ScalarTypeOf(field)) {
        DecodeScalar(item, field, item_path, message);
      } else {
        DecodeMap(item, item_path, *message.GetReflection()->AddMessage(&message, &field));
      }
    }
  }

 private:
  void ReportUnknown(const YamlEntry& entry,
                     const std::string& path,
                     const std::vector<std::string>& names) {
    const bool is_number =
        !entry.key.empty() && entry.key.find_first_not_of("0123456789") == std::string::npos;
    problems_.Add(entry.at,
                  FieldPath(path, entry.key),
                  "unknown field" + Allowed(Join(names)),
                  is_number ? "a number has no ',' in it" : DidYouMean(entry.key, names));
    if (const std::optional<std::string> meant = Nearest(entry.key, names)) {
      given_.emplace(FieldPath(path, *meant), entry.at);  // so that it is not missing as well
    }
  }

  static std::vector<std::string> FieldNames(const Descriptor& type) {
    std::vector<std::string> names;
    for (int i = 0; i < type.field_count(); ++i) {
      names.push_back(type.field(i)->json_name());
    }
    return names;
  }

  static const FieldDescriptor* FindField(const Descriptor& type, const std::string& name) {
    for (int i = 0; i < type.field_count(); ++i) {
      if (type.field(i)->json_name() == name) {
        return type.field(i);
      }
    }
    return nullptr;
  }

  /// Reports a second member of a oneof.
  bool OneofIsFree(const FieldDescriptor& field,
                   const Message& message,
                   Position at,
                   const std::string& path) {
    const OneofDescriptor* oneof = field.real_containing_oneof();
    if (oneof == nullptr || !message.GetReflection()->HasOneof(message, oneof)) {
      return true;
    }
    std::vector<std::string> members;
    for (int i = 0; i < oneof->field_count(); ++i) {
      members.push_back(oneof->field(i)->json_name());
    }
    problems_.Add(
        at,
        path,
        "given beside " +
            message.GetReflection()->GetOneofFieldDescriptor(message, oneof)->json_name() +
            Allowed("one of " + Join(members)));
    return false;
  }

  void DecodeValue(const YamlEntry& entry,
                   const FieldDescriptor& field,
                   const std::string& path,
                   Message& message) {
    const YamlNode& node = entry.value;
    if (node.kind == YamlNode::Kind::kRefused) {
      return;
    }
    if (node.kind == YamlNode::Kind::kNull) {
      problems_.Add(entry.at, path, "has no value; give one or remove the field");
    } else if (field.is_map()) {
      DecodeTextMap(node, field, path, message);
    } else if (field.is_repeated()) {
      DecodeList(node, field, path, message);
    } else if (ScalarTypeOf(field)) {
      DecodeScalar(node, field, path, message);
    } else {
      Message& child = *message.GetReflection()->MutableMessage(&message, &field);
      IsOpen(field) ? DecodeOpen(node, path, child) : DecodeMap(node, path, child);
    }
  }

  void DecodeOpen(const YamlNode& node, const std::string& path, Message& message) {
    if (node.kind != YamlNode::Kind::kMap) {
      problems_.Add(node.at, path, "expected a map, found " + Describe(node));
      return;
    }
    DecodeStruct(node, static_cast<google::protobuf::Struct&>(message));
  }

  /// Reports a list or map that has too many elements.
  bool SizeFits(std::size_t size,
                const v1::FieldRules& rules,
                Position at,
                const std::string& path) {
    const auto most = static_cast<std::size_t>(rules.most_elements());
    if (most != 0 && size > most) {
      problems_.Add(at, path, Elements(size) + Allowed("at most " + std::to_string(most)));
      return false;
    }
    return true;
  }

  /// map<string, string>.
  void DecodeTextMap(const YamlNode& node,
                     const FieldDescriptor& field,
                     const std::string& path,
                     Message& message) {
    if (node.kind != YamlNode::Kind::kMap) {
      problems_.Add(node.at, path, "expected a map of texts, found " + Describe(node));
      return;
    }
    if (!SizeFits(node.entries.size(), RulesOf(field), node.at, path)) {
      return;
    }
    for (const YamlEntry& entry : node.entries) {
      if (EntryFits(entry, RulesOf(field), FieldPath(path, entry.key))) {
        Message& pair = *message.GetReflection()->AddMessage(&message, &field);
        Store(pair, *field.message_type()->map_key(), entry.key);
        Store(pair, *field.message_type()->map_value(), entry.value.text);
      }
    }
  }

  /// Reports what is wrong with a key or its text.
  bool EntryFits(const YamlEntry& entry, const v1::FieldRules& rules, const std::string& path) {
    if (entry.value.kind == YamlNode::Kind::kRefused) {
      return false;
    }
    if (!IsText(entry.value)) {
      problems_.Add(entry.value.at,
                    path,
                    "expected a text, found " + Describe(entry.value) + "; write it in quotes");
      return false;
    }
    return HasShape(KeyShapeOf(rules.format()), entry.key, entry.at, path) &&
           HasShape(ShapeOf(rules.format()), entry.value.text, entry.value.at, path);
  }

  /// Reports a text that has another shape.
  bool HasShape(const TextShape& shape,
                const std::string& text,
                Position at,
                const std::string& path) {
    if (Matches(shape, text)) {
      return true;
    }
    problems_.Add(
        at, path, Quote(text) + " has the wrong form" + Allowed(std::string(shape.meaning)));
    return false;
  }

  /// Whether YAML takes the value for a text rather than a number, a bool or null.
  static bool IsText(const YamlNode& node) {
    return node.kind == YamlNode::Kind::kScalar &&
           (node.quoted || !(ParseScalar(ScalarType::kReal, node.text) ||
                             ParseScalar(ScalarType::kBool, node.text)));
  }

  std::optional<Scalar> ReadScalar(const YamlNode& node,
                                   const FieldDescriptor& field,
                                   const std::string& path) {
    const ScalarType type = *ScalarTypeOf(field);
    if (type == ScalarType::kText) {
      return ReadText(node, field, path);
    }
    if (type == ScalarType::kEnum) {
      return ReadEnum(node, field, path);
    }
    const bool may_be_quoted = type == ScalarType::kBytes || type == ScalarType::kDuration;
    std::optional<Scalar> value;
    if (node.kind == YamlNode::Kind::kScalar && (!node.quoted || may_be_quoted) &&
        (!may_be_quoted || node.text.size() <= kLongestNotation)) {
      value = ParseScalar(type, node.text);
    }
    if (!value) {
      problems_.Add(node.at,
                    path,
                    std::string("expected ") + ExpectedText(type) + ", found " + Describe(node));
      return std::nullopt;
    }
    if (!FitsType(field, *value) || !InRange(RulesOf(field), type, *value)) {
      problems_.Add(
          node.at, path, Shown(node) + " is out of range" + Allowed(RangeText(RulesOf(field))));
      return std::nullopt;
    }
    if (const auto* const real = std::get_if<double>(&*value); real != nullptr && IsTiny(*real)) {
      problems_.Add(node.at,
                    path,
                    Shown(node) + " is too close to 0" +
                        Allowed(RangeText(RulesOf(field)) + "; the smallest above 0 is 1.2e-38"));
      return std::nullopt;
    }
    return value;
  }

  std::optional<Scalar> ReadText(const YamlNode& node,
                                 const FieldDescriptor& field,
                                 const std::string& path) {
    if (!IsText(node)) {
      problems_.Add(node.at,
                    path,
                    "expected a text, found " + Describe(node) +
                        (node.kind == YamlNode::Kind::kScalar ? "; write it in quotes" : ""));
      return std::nullopt;
    }
    const v1::FieldRules& rules = RulesOf(field);
    const std::vector<std::string> allowed(rules.allowed().begin(), rules.allowed().end());
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), node.text) == allowed.end()) {
      problems_.Add(node.at,
                    path,
                    Quote(node.text) + " is not known" + Allowed(Join(allowed)),
                    DidYouMean(node.text, allowed));
      return std::nullopt;
    }
    return HasShape(ShapeOf(rules.format()), node.text, node.at, path)
               ? std::optional<Scalar>(node.text)
               : std::nullopt;
  }

  std::optional<Scalar> ReadEnum(const YamlNode& node,
                                 const FieldDescriptor& field,
                                 const std::string& path) {
    const std::vector<std::string> texts = EnumTexts(*field.enum_type());
    if (node.kind == YamlNode::Kind::kScalar) {
      for (const EnumValueDescriptor* value : EnumValues(*field.enum_type())) {
        if (EnumText(*value) == node.text) {
          return value;
        }
      }
    }
    const bool name = node.kind == YamlNode::Kind::kScalar;
    problems_.Add(
        node.at,
        path,
        (name ? Describe(node) + " is not known" : "expected a name, found " + Describe(node)) +
            Allowed(Join(texts)),
        IsBooleanOff(node, texts) ? kBooleanOff : DidYouMean(node.text, texts));
    return std::nullopt;
  }

  Locations& given_;
  Problems& problems_;
};

}  // namespace

void DecodeMessage(const YamlNode& node,
                   const std::string& path,
                   Message& message,
                   Locations& given,
                   Problems& problems) {
  Decoder(given, problems).DecodeMap(node, path, message);
}

void StoreDefault(Message& message, const FieldDescriptor& field, const std::string& yaml) {
  Problems problems("default");
  Locations given;
  Decoder decoder(given, problems);
  const std::optional<YamlNode> node = ReadYaml(yaml, problems);
  ADAMANT_CHECK(node.has_value(), "a default in the schema is YAML");
  if (field.is_repeated()) {
    decoder.DecodeList(*node, field, field.json_name(), message);
  } else if (IsMessage(field)) {
    decoder.DecodeMap(
        *node, field.json_name(), *message.GetReflection()->MutableMessage(&message, &field));
  } else {
    decoder.DecodeScalar(*node, field, field.json_name(), message);
  }
  ADAMANT_CHECK(problems.empty(), "a default in the schema has the field's type and range");
}

}  // namespace adamant::job
