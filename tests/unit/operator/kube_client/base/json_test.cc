#include "operator/kube_client/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace adamant::kube {
namespace {

TEST(JsonTest, WhatIsMissingOrOfAnotherTypeIsTheFallback) {
  const Json json = *ParseJson(R"({"a":{"text":"x","number":3,"yes":true,"list":[1]},"n":null})");
  EXPECT_EQ(StringAt(json, {"a", "text"}), "x");
  EXPECT_EQ(IntAt(json, {"a", "number"}), 3);
  EXPECT_TRUE(BoolAt(json, {"a", "yes"}));
  EXPECT_EQ(StringAt(json, {"a", "number"}, "none"), "none");
  EXPECT_EQ(IntAt(json, {"a", "text"}, -1), -1);
  EXPECT_EQ(StringAt(json, {"a", "text", "deeper"}, "none"), "none");
  EXPECT_EQ(StringAt(json, {"n", "x"}, "none"), "none");
  EXPECT_EQ(Find(json, {"a", "list", "0"}), nullptr);
  EXPECT_EQ(Find(json, {}), &json);
}

TEST(JsonTest, GarbageIsAnErrorAndNoException) {
  for (const char* text : {"", "{", "{\"a\":}", "nothing", "{} {}", "\"\xff\""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(text).status())) << text;
  }
}

TEST(JsonTest, WhatWouldExhaustTheStackIsNotRead) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(ParseJson(nested(500)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseJson(nested(1'000'000)).status()));
}

TEST(JsonTest, BytesThatAreNoTextAreWrittenAllTheSame) {
  EXPECT_EQ(DumpJson(Json{{"a", "x\xffy"}}), "{\"a\":\"x\xef\xbf\xbdy\"}");
}

}  // namespace
}  // namespace adamant::kube
