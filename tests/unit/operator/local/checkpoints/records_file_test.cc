#include "operator/local/checkpoints/records_file.h"

#include <gtest/gtest.h>

#include <string>

namespace adamant::local {
namespace {

const Records kExample = {{"", "empty key"}, {"a", ""}, {"b", std::string("\0\xff", 2)}};

TEST(RecordsFileTest, WhatIsWrittenComesBack) {
  const auto decoded = DecodeRecords(EncodeRecords(kExample));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, kExample);
  EXPECT_EQ(DecodeRecords(EncodeRecords({})).value(), Records());
}

TEST(RecordsFileTest, AnyChangeAndAnyCutIsNoticed) {
  const std::string bytes = EncodeRecords(kExample);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 4;
    EXPECT_FALSE(DecodeRecords(changed).ok()) << "byte " << i;
    EXPECT_TRUE(absl::IsDataLoss(DecodeRecords(bytes.substr(0, i)).status())) << "cut at " << i;
  }
  EXPECT_FALSE(DecodeRecords(bytes + "more").ok());
}

TEST(RecordsFileTest, AnotherFormatVersionIsNamed) {
  std::string bytes = EncodeRecords(kExample);
  bytes[0] = 9;
  const absl::Status refused = DecodeRecords(bytes).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_NE(refused.message().find("format version 9, this program reads 1"), std::string::npos)
      << refused;
}

}  // namespace
}  // namespace adamant::local
