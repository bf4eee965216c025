#include "operator/kube/schema/crd/defaults_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "operator/kube/schema/message_json.h"
#include "proto/adamant/v1/schema.pb.h"
#include "services/common/job/yaml/decode.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

/// Adds the defaults of what is not given, at every level.
void Complete(const Descriptor& type, Json& given) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!given.contains(field.json_name())) {
      if (std::optional<Json> value = DefaultJson(field)) {
        given[field.json_name()] = *std::move(value);
      }
    } else if (job::IsMessage(field) && !field.is_repeated()) {
      Complete(*field.message_type(), given[field.json_name()]);
    }
  }
}

/// The field's default, as a message of only this field has it.
Json WrittenDefault(const FieldDescriptor& field) {
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(field.containing_type())
          ->New());
  job::StoreDefault(*message, field, job::RulesOf(field).default_());
  return MessageJson(*message).at(field.json_name());
}

}  // namespace

std::optional<Json> DefaultJson(const FieldDescriptor& field) {
  const v1::FieldRules& rules = job::RulesOf(field);
  if (rules.required() || !rules.when().empty() || field.real_containing_oneof() != nullptr) {
    return std::nullopt;
  }
  Json value = rules.has_default_() ? WrittenDefault(field) : Json::object();
  if (!job::IsMessage(field) || field.is_repeated()) {
    return rules.has_default_() ? std::optional(std::move(value)) : std::nullopt;
  }
  Complete(*field.message_type(), value);
  return value.empty() ? std::nullopt : std::optional(std::move(value));
}

}  // namespace adamant::kube
