#include "services/common/base/text/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

namespace adamant {
namespace {

TEST(Utf8Test, TextIsAsTheStandardHasIt) {
  for (const std::string_view text :
       {"", "a/b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a\xed\x9f\xbfz"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
}

TEST(Utf8Test, WhatIsNoTextIsToldFromIt) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"u\xff"sv,
                                      "m\xe9"sv,
                                      "\xc3"sv,
                                      "\xc0\xaf"sv,
                                      "\xe0\x80\xaf"sv,
                                      "\xed\xa0\x80"sv,
                                      "\xf4\x90\x80\x80"sv,
                                      "a\0b"sv}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace adamant
