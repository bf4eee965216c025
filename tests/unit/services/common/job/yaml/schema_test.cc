// The schema obeys what the parser takes for granted. A field added to job.proto without rules, or
// with rules that do not parse, fails here.

#include "services/common/job/yaml/schema.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/schema.pb.h"
#include "services/common/job/yaml/decode.h"

namespace adamant::job {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

std::vector<const FieldDescriptor*> AllFields() {
  std::vector<const FieldDescriptor*> fields;
  const FileDescriptor& file = *v1::TrainingJob::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) {
    const Descriptor& type = *file.message_type(i);
    for (int j = 0; j < type.field_count(); ++j) {
      fields.push_back(type.field(j));
    }
  }
  return fields;
}

bool HasRange(ScalarType type) {
  return type == ScalarType::kInteger || type == ScalarType::kReal || type == ScalarType::kBytes ||
         type == ScalarType::kDuration;
}

TEST(SchemaTest, EveryNumberHasALowerAndAnUpperBoundThatParse) {
  for (const FieldDescriptor* field : AllFields()) {
    const std::optional<ScalarType> type = ScalarTypeOf(*field);
    if (!type || !HasRange(*type) || field->is_map()) {
      continue;
    }
    const v1::FieldRules& rules = RulesOf(*field);
    EXPECT_NE(rules.at_least().empty(), rules.above().empty()) << field->full_name();
    EXPECT_NE(rules.at_most().empty(), rules.below().empty()) << field->full_name();
    for (const std::string& bound :
         {rules.at_least(), rules.above(), rules.at_most(), rules.below()}) {
      EXPECT_TRUE(bound.empty() || ParseScalar(*type, bound)) << field->full_name();
    }
  }
}

TEST(SchemaTest, EveryIntegerOf32BitsIsBoundedWithinThem) {
  for (const FieldDescriptor* field : AllFields()) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      EXPECT_FALSE(InRange(RulesOf(*field), ScalarType::kInteger, std::int64_t{1} << 31))
          << field->full_name();
    }
  }
}

TEST(SchemaTest, EveryDefaultHasItsFieldsNotation) {
  for (const FieldDescriptor* field : AllFields()) {
    if (RulesOf(*field).has_default_()) {
      const std::unique_ptr<google::protobuf::Message> message(
          google::protobuf::MessageFactory::generated_factory()
              ->GetPrototype(field->containing_type())
              ->New());
      StoreDefault(*message, *field, RulesOf(*field).default_());  // aborts if it does not fit
      EXPECT_TRUE(IsSet(*message, *field)) << field->full_name();
    }
  }
}

TEST(SchemaTest, EveryScalarIsRequiredHasADefaultOrSaysWhatAbsenceMeans) {
  // Fields whose comment says "Absent: ..." or that only pass through.
  const std::vector<std::string> may_be_absent = {
      "adamant.v1.Metadata.namespace",
      "adamant.v1.Network.output",
      "adamant.v1.Layer.inputs",
      "adamant.v1.Optimiser.location",
      "adamant.v1.LayerOptimiser.rate",
      "adamant.v1.LayerOptimiser.weight_decay",
      "adamant.v1.Distribution.share_every",
      "adamant.v1.Distribution.fetch_every",
      "adamant.v1.Distribution.push_every",
      "adamant.v1.WarmStart.examples",
      "adamant.v1.ParameterServers.min_in_sync",
      "adamant.v1.RunPolicy.target_accuracy",
      "adamant.v1.RunPolicy.active_deadline",
      "adamant.v1.RunPolicy.epoch_deadline",
      "adamant.v1.RunPolicy.start_deadline",
      "adamant.v1.RunPolicy.ttl_after_finished",
      "adamant.v1.FailureRule.exit_codes",
      "adamant.v1.FailureRule.roles",
      "adamant.v1.IdxFiles.claim",
      "adamant.v1.ServerStorage.size",
      "adamant.v1.ServerStorage.storage_class",
      "adamant.v1.Storage.storage_class",
      "adamant.v1.Output.path",
      "adamant.v1.CheckpointCopies.every",
  };
  for (const FieldDescriptor* field : AllFields()) {
    const v1::FieldRules& rules = RulesOf(*field);
    const bool in_oneof = field->real_containing_oneof() != nullptr;
    if (!ScalarTypeOf(*field) || in_oneof || rules.required() || rules.has_default_() ||
        rules.has_default_from()) {
      continue;
    }
    EXPECT_NE(std::find(may_be_absent.begin(), may_be_absent.end(), field->full_name()),
              may_be_absent.end())
        << field->full_name();
  }
}

TEST(SchemaTest, EveryConditionNamesAnEnumFieldAndItsValues) {
  for (const FieldDescriptor* field : AllFields()) {
    const std::optional<Condition> condition = ConditionOf(*field);
    if (!condition) {
      continue;
    }
    ASSERT_EQ(condition->selector->cpp_type(), FieldDescriptor::CPPTYPE_ENUM);
    const std::vector<std::string> texts = EnumTexts(*condition->selector->enum_type());
    for (const std::string& value : condition->values) {
      EXPECT_NE(std::find(texts.begin(), texts.end(), value), texts.end()) << field->full_name();
    }
  }
}

TEST(SchemaTest, EnumValuesReadAsCamelCase) {
  EXPECT_EQ(EnumTexts(*v1::Layer::Kind_descriptor()),
            (std::vector<std::string>{"Conv2d",
                                      "MaxPool",
                                      "AveragePool",
                                      "FullyConnected",
                                      "Relu",
                                      "Sigmoid",
                                      "Tanh",
                                      "Dropout",
                                      "Flatten",
                                      "Add",
                                      "Concat"}));
}

TEST(SchemaTest, FieldPathsQuoteStrangeNames) {
  EXPECT_EQ(FieldPath("", "spec"), "spec");
  EXPECT_EQ(FieldPath("spec", "batchSize"), "spec.batchSize");
  EXPECT_EQ(FieldPath("spec", "a b\n"), "spec.\"a b\\x0a\"");
  EXPECT_EQ(ElementPath("spec.layers", 2), "spec.layers[2]");
}

}  // namespace
}  // namespace adamant::job
