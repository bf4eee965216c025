#include "operator/kube/schema/crd/cel_rules.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/schema/crd/defaults_json.h"
#include "proto/adamant/v1/schema.pb.h"
#include "services/common/base/check.h"
#include "services/common/job/yaml/problems.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using job::ScalarType;
using Json = nlohmann::ordered_json;

constexpr char kBytes[] = "^[0-9]+(\\.[0-9]+)?([KMGTP]i|[kMGTP])?$";
constexpr char kDuration[] = "^([0-9]+(\\.[0-9]+)?(h|m|s|ms|us|ns))+$";

Json Rule(std::string rule, std::string message, const std::string& field = "") {
  Json json = {{"rule", std::move(rule)}, {"message", std::move(message)}};
  if (!field.empty()) {
    json["fieldPath"] = "." + field;
  }
  return json;
}

std::string Self(const FieldDescriptor& field) { return "self." + field.json_name(); }

/// "[has(self.a), has(self.b)]"
std::string Members(const OneofDescriptor& oneof) {
  std::vector<std::string> given;
  for (int i = 0; i < oneof.field_count(); ++i) {
    given.push_back("has(" + Self(*oneof.field(i)) + ")");
  }
  return "[" + job::Join(given) + "]";
}

void AddOneof(const OneofDescriptor& oneof, Json& rules) {
  std::vector<std::string> names;
  for (int i = 0; i < oneof.field_count(); ++i) {
    names.push_back(oneof.field(i)->json_name());
  }
  const std::string members = Members(oneof);
  const std::string allowed = "one of " + job::Join(names);
  if (job::IsRequired(oneof)) {
    rules.push_back(
        Rule(members + ".exists(given, given)", "incomplete (required: " + allowed + ")"));
  }
  rules.push_back(Rule(members + ".filter(given, given).size() <= 1",
                       "given beside another (allowed: " + allowed + ")"));
}

/// The rules of a field's `when`. The field that it looks at is always there.
void AddCondition(const FieldDescriptor& field, Json& rules) {
  const std::optional<job::Condition> condition = job::ConditionOf(field);
  if (!condition) {
    return;
  }
  std::vector<std::string> texts;
  for (const std::string& value : condition->values) {
    texts.push_back("'" + value + "'");
  }
  const std::string holds = texts.size() == 1
                                ? Self(*condition->selector) + " == " + texts.front()
                                : Self(*condition->selector) + " in [" + job::Join(texts) + "]";
  const std::string given = "has(" + Self(field) + ")";
  rules.push_back(Rule("!" + given + " || " + holds,
                       "not used here (allowed with " + condition->selector->json_name() + ": " +
                           job::Join(condition->values) + ")",
                       field.json_name()));
  if (job::RulesOf(field).required()) {
    Json rule = Rule("!(" + holds + ") || " + given, "required, but missing", field.json_name());
    rule["reason"] = "FieldValueRequired";
    rules.push_back(std::move(rule));
  }
}

/// The rule that keeps a field from changing, if it may not.
void AddTransition(const FieldDescriptor& field, Json& rules) {
  const std::string& name = field.json_name();
  const std::string now = "self." + name;
  const std::string before = "oldSelf." + name;
  const std::string equal = now + " == " + before;
  const std::string given = "has(" + now + ") == has(" + before + ")";
  const bool always = job::RulesOf(field).required() || DefaultJson(field);
  const std::string same = always ? equal : given + " && (!has(" + now + ") || " + equal + ")";
  const char* const refusal =
      "cannot change while the job exists; delete it, or give the new one another name";
  switch (job::RulesOf(field).change()) {
    case v1::CHANGE_ALWAYS:
      return;
    case v1::CHANGE_WHILE_SUSPENDED:
      rules.push_back(Rule("oldSelf.runPolicy.suspend || (" + same + ")",
                           "cannot change while the job runs; set spec.runPolicy.suspend first",
                           name));
      return;
    default:
      break;
  }
  if (!HasRulesWithin(field)) {
    rules.push_back(Rule(same, refusal, name));
  } else if (!always) {
    rules.push_back(Rule(given, refusal, name));  // whoever comes or goes has no rules within
  }
}

/// The ends of a range: comparison and bound.
std::vector<std::pair<std::string, std::string>> Ends(const v1::FieldRules& rules) {
  std::vector<std::pair<std::string, std::string>> ends;
  for (const auto& [comparison, bound] : {std::pair(">=", rules.at_least()),
                                          std::pair(">", rules.above()),
                                          std::pair("<=", rules.at_most()),
                                          std::pair("<", rules.below())}) {
    if (!bound.empty()) {
      ends.emplace_back(comparison, bound);
    }
  }
  return ends;
}

/// `self` against one end of its range.
std::string Compared(ScalarType type, const std::string& comparison, const std::string& bound) {
  switch (type) {
    case ScalarType::kDuration:
      return "duration(self) " + comparison + " duration('" + bound + "')";
    case ScalarType::kBytes:
      return "quantity(string(self)).compareTo(quantity('" + bound + "')) " + comparison + " 0";
    default:
      return "self " + comparison + " " + bound;
  }
}

/// "... || " for a text in another notation, which the pattern reports.
std::string OtherNotation(const FieldDescriptor& field) {
  const ScalarType type = *job::ScalarTypeOf(field);
  if (type == ScalarType::kReal) {
    return "";
  }
  std::string notation = NotationOf(field);
  for (std::size_t at = 0; (at = notation.find('\\', at)) != std::string::npos; at += 2) {
    notation.insert(at, "\\");
  }
  const std::string other = "!self.matches('" + notation + "')";
  return (type == ScalarType::kBytes ? "(type(self) == string && " + other + ")" : other) + " || ";
}

}  // namespace

bool MayChange(const Descriptor& type) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (job::RulesOf(field).change() != v1::CHANGE_NEVER ||
        (job::IsMessage(field) && !field.is_repeated() && MayChange(*field.message_type()))) {
      return true;
    }
  }
  return false;
}

bool HasRulesWithin(const FieldDescriptor& field) {
  return job::IsMessage(field) && !job::IsOpen(field) && !field.is_repeated();
}

Json MessageRules(const Descriptor& type, bool frozen) {
  Json rules = Json::array();
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    AddOneof(*type.oneof_decl(i), rules);
  }
  for (int i = 0; i < type.field_count(); ++i) {
    AddCondition(*type.field(i), rules);
  }
  const auto& options = type.options();
  for (int i = 0; i < options.ExtensionSize(v1::checks); ++i) {
    const v1::Check& check = options.GetExtension(v1::checks, i);
    rules.push_back(Rule(check.holds(), check.message(), check.field()));
  }
  if (frozen || MayChange(type)) {
    for (int i = 0; i < type.field_count(); ++i) {
      AddTransition(*type.field(i), rules);
    }
  }
  return rules;
}

Json RangeRules(const FieldDescriptor& field) {
  const ScalarType type = *job::ScalarTypeOf(field);
  const v1::FieldRules& rules = job::RulesOf(field);
  std::string holds;
  for (const auto& [comparison, bound] : Ends(rules)) {
    if (type == ScalarType::kReal && bound.find('.') == std::string::npos) {
      continue;  // the schema's own bounds do
    }
    holds += holds.empty() ? "" : " && ";
    holds += Compared(type, comparison, bound);
  }
  if (holds.empty()) {
    return Json::array();
  }
  return Json::array({Rule(OtherNotation(field) + "(" + holds + ")",
                           "out of range (allowed: " + job::RangeText(rules) + ")")});
}

const char* NotationOf(const FieldDescriptor& field) {
  switch (job::ScalarTypeOf(field).value_or(ScalarType::kText)) {
    case ScalarType::kBytes:
      return kBytes;
    case ScalarType::kDuration:
      return kDuration;
    default:
      ADAMANT_CHECK(false, "only quantities and durations have a notation of their own");
  }
}

}  // namespace adamant::kube
