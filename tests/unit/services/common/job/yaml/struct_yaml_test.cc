#include "services/common/job/yaml/struct_yaml.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "services/common/job/yaml/problems.h"

namespace adamant::job {
namespace {

google::protobuf::Struct Decoded(const std::string& yaml) {
  Problems problems("open.yaml");
  const std::optional<YamlNode> node = ReadYaml(yaml, problems);
  EXPECT_TRUE(problems.empty()) << yaml;
  google::protobuf::Struct open;
  DecodeStruct(*node, open);
  return open;
}

TEST(StructYamlTest, ValuesHaveTheTypesThatKubectlReads) {
  const google::protobuf::Struct open = Decoded(
      "{text: always, quoted: '7', flag: true, number: 2.5, mode: 0644, nothing: null, "
      "list: [1, a], map: {a: {b: c}}}");
  const auto& fields = open.fields();
  EXPECT_EQ(fields.at("text").string_value(), "always");
  EXPECT_EQ(fields.at("quoted").string_value(), "7");
  EXPECT_TRUE(fields.at("flag").bool_value());
  EXPECT_EQ(fields.at("number").number_value(), 2.5);
  EXPECT_EQ(fields.at("mode").number_value(), 420);
  EXPECT_TRUE(fields.at("nothing").has_null_value());
  EXPECT_EQ(fields.at("list").list_value().values_size(), 2);
  EXPECT_EQ(fields.at("map")
                .struct_value()
                .fields()
                .at("a")
                .struct_value()
                .fields()
                .at("b")
                .string_value(),
            "c");
}

TEST(StructYamlTest, WhatIsWrittenReadsBackTheSame) {
  const google::protobuf::Struct open = Decoded(
      "{empty: {}, none: [], nested: [[1, 2], {a: 1, b: [x]}, null], yes: 'no', words: \"a: b\\n\","
      " number: -1.5e-7, big: 1073741824, flag: false}");
  const std::string yaml = "open:" + StructYaml(open, 1);
  const google::protobuf::Struct again = Decoded(yaml);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      open, again.fields().at("open").struct_value()))
      << yaml;
}

}  // namespace
}  // namespace adamant::job
