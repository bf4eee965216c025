#include "services/common/base/text/nesting.h"

#include <gtest/gtest.h>

#include <string>

namespace adamant {
namespace {

TEST(NestingTest, WhatLiesInEachOtherCountsAndWhatFollowsDoesNot) {
  EXPECT_FALSE(NestsDeeper("", 0));
  EXPECT_FALSE(NestsDeeper("1", 0));
  EXPECT_TRUE(NestsDeeper("[]", 0));
  EXPECT_FALSE(NestsDeeper(R"([{}, [], {"a": []}, [1]])", 3));
  EXPECT_TRUE(NestsDeeper(R"([{}, [], {"a": []}, [1]])", 2));
}

TEST(NestingTest, BracketsWithinTextsDoNotCount) {
  EXPECT_FALSE(NestsDeeper(R"({"[[[": "{{{ \" [[[ \\"})", 1));
  EXPECT_TRUE(NestsDeeper(R"({"a": "\\", "b": []})", 1));
}

TEST(NestingTest, WhatIsNoJsonIsLookedAtToItsEnd) {
  EXPECT_FALSE(NestsDeeper("]]]]", 0));
  EXPECT_FALSE(NestsDeeper("\"\\", 0));
  EXPECT_TRUE(NestsDeeper("]" + std::string(5, '['), 4));
}

}  // namespace
}  // namespace adamant
