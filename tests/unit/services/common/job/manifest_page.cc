#include "tests/unit/services/common/job/manifest_page.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/schema.pb.h"
#include "services/common/job/yaml/comments.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/job/yaml/text_shapes.h"

namespace adamant::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;

constexpr std::string_view kIntroduction = R"(# The manifest: TrainingJob

<!-- Made from proto/adamant/v1/job.proto. To make it anew after a change there:
     ADAMANT_WRITE_EXPECTED=1 build/release/tests/manifest_page_test -->

What `adamant train` and `kubectl apply` read. One YAML document of at most 1 MB, without aliases, anchors and tags.
`adamant validate` checks a manifest and reports everything that is wrong with it at once; with `--show-defaults` it
prints the manifest with all defaults filled in.

- *Quantities* are bytes in Kubernetes' notation: `4096`, `64Mi`, `1.5Gi`, `2G`.
- *Durations* have units: `250ms`, `5s`, `1h30m`.
- Relative paths start at the folder of the manifest.
- A field that is *required* must be given; *with ...* says that a field is only used with these values of another.
- In a cluster a job's spec stays as it was applied; a field that can change says so. Whatever else is to be different is
  another job.
)";

std::string Code(const std::string& text) { return "`" + text + "`"; }

std::string Link(const std::string& type) {
  std::string anchor = type;
  std::transform(anchor.begin(), anchor.end(), anchor.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return "[" + type + "](#" + anchor + ")";
}

std::string TypeText(const FieldDescriptor& field) {
  if (field.is_map()) {
    return "map of texts";
  }
  if (IsOpen(field)) {
    return "map";
  }
  const std::optional<ScalarType> type = ScalarTypeOf(field);
  const std::string list = field.is_repeated() ? "list of " : "";
  if (!type) {
    return list + Link(field.message_type()->name());
  }
  const std::map<ScalarType, std::string> names = {{ScalarType::kBool, "true or false"},
                                                   {ScalarType::kInteger, "integer"},
                                                   {ScalarType::kReal, "number"},
                                                   {ScalarType::kBytes, "quantity"},
                                                   {ScalarType::kDuration, "duration"},
                                                   {ScalarType::kText, "text"},
                                                   {ScalarType::kEnum, "name"}};
  return list + names.at(*type) + (field.is_repeated() && *type != ScalarType::kBool ? "s" : "");
}

/// The field with this path from the document's root.
const FieldDescriptor& FieldAt(const std::string& path) {
  const Descriptor* type = v1::TrainingJob::descriptor();
  const FieldDescriptor* field = nullptr;
  std::istringstream names(path);
  for (std::string name; std::getline(names, name, '.');) {
    field = type->FindFieldByCamelcaseName(name);
    type = field->message_type();
  }
  return *field;
}

std::string DefaultText(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  if (rules.required()) {
    return "*required*";
  }
  if (rules.has_default_from()) {
    const bool may_be_more = rules.at_most() != RulesOf(FieldAt(rules.default_from())).at_most();
    return "that of " + Code(rules.default_from()) +
           (may_be_more ? ", at most " + rules.at_most() : "");
  }
  return rules.has_default_() ? Code(rules.default_()) : "";
}

std::string AllowedText(const FieldDescriptor& field) {
  const v1::FieldRules& rules = RulesOf(field);
  std::vector<std::string> parts;
  if (rules.elements() > 0) {
    parts.push_back("exactly " + std::to_string(rules.elements()));
  }
  if (field.enum_type() != nullptr) {
    for (const std::string& text : EnumTexts(*field.enum_type())) {
      parts.push_back(Code(text));
    }
  }
  for (const std::string& text : rules.allowed()) {
    parts.push_back(Code(text));
  }
  if (!RangeText(rules).empty()) {
    parts.push_back(RangeText(rules));
  }
  if (rules.format() == v1::TEXT_FORMAT_DNS_LABEL || rules.format() == v1::TEXT_FORMAT_IDENTIFIER ||
      rules.format() == v1::TEXT_FORMAT_DNS_SUBDOMAIN) {
    parts.emplace_back(ShapeOf(rules.format()).meaning);
  }
  if (rules.most_elements() > 0) {
    parts.push_back("at most " + std::to_string(rules.most_elements()) + " elements");
  }
  return Join(parts);
}

std::string MeaningText(const FieldDescriptor& field, const Comments& comments) {
  std::string text = comments.Of(field);
  if (field.real_containing_oneof() != nullptr) {
    text += " *One of these fields is required.*";
  }
  if (const std::optional<Condition> condition = ConditionOf(field)) {
    text += " *With " + condition->selector->json_name() + " " + Join(condition->values) + ".*";
  }
  if (RulesOf(field).change() == v1::CHANGE_ALWAYS) {
    text += " *Can change while the job exists.*";
  } else if (RulesOf(field).change() == v1::CHANGE_WHILE_SUSPENDED) {
    text += " *Can change while the job is suspended.*";
  }
  return text;
}

/// The messages below `type`, each once, in the order in which a reader meets them.
void Collect(const Descriptor& type,
             const std::string& path,
             std::vector<const Descriptor*>& order,
             std::map<const Descriptor*, std::vector<std::string>>& paths) {
  paths[&type].push_back(path);
  if (paths[&type].size() == 1) {
    order.push_back(&type);
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (IsMessage(field)) {
      Collect(*field.message_type(),
              FieldPath(path, field.json_name()) + (field.is_repeated() ? "[]" : ""),
              order,
              paths);
    }
  }
}

std::string EnumSection(const EnumDescriptor& type, const Comments& comments) {
  std::string text;
  for (const EnumValueDescriptor* value : EnumValues(type)) {
    text += "- " + Code(EnumText(*value)) + ": " + comments.Of(*value) + "\n";
  }
  return text;
}

std::string Section(const Descriptor& type,
                    const std::vector<std::string>& paths,
                    const Comments& comments) {
  std::string text = "\n## " + type.name() + "\n\n";
  std::vector<std::string> places;
  for (const std::string& path : paths) {
    if (!path.empty()) {
      places.push_back(Code(path));
    }
  }
  text += (places.empty() ? "" : Join(places) + ": ") + comments.Of(type) + "\n\n";
  text += "| Field | Type | Default | Allowed | Meaning |\n|---|---|---|---|---|\n";
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    text += "| " + Code(field.json_name()) + " | " + TypeText(field) + " | " + DefaultText(field) +
            " | " + AllowedText(field) + " | " + MeaningText(field, comments) + " |\n";
  }
  for (int i = 0; i < type.enum_type_count(); ++i) {
    const EnumDescriptor& values = *type.enum_type(i);
    text += "\n" + values.name() + ":\n\n" + EnumSection(values, comments);
  }
  return text;
}

}  // namespace

std::string ManifestPage(const Comments& comments) {
  std::vector<const Descriptor*> order;
  std::map<const Descriptor*, std::vector<std::string>> paths;
  Collect(*v1::TrainingJob::descriptor(), "", order, paths);
  std::string page(kIntroduction);
  for (const Descriptor* type : order) {
    page += Section(*type, paths[type], comments);
  }
  return page;
}

}  // namespace adamant::job
