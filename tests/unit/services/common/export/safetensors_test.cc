#include "services/common/export/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "services/common/base/rng.h"

namespace adamant::exports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<float> kMatrix = {1, 2, 3, 4, 5, 6};
const std::vector<float> kBias = {-0.5F, 1e-30F};

std::string Example() {
  return EncodeSafetensors({{"fc.weight", {2, 3}, kMatrix}, {"fc.bias", {2}, kBias}},
                           {{"job", "digits \"x\""}})
      .value();
}

// A file with this header and so many bytes of data.
std::string File(const std::string& header, std::size_t data_bytes) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return bytes + header + std::string(data_bytes, '\0');
}

TEST(SafetensorsTest, WhatIsWrittenIsRead) {
  const auto file = DecodeSafetensors(Example());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata, (Metadata{{"job", "digits \"x\""}}));
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].name, "fc.weight");
  EXPECT_EQ(file->tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(file->tensors[0].values, kMatrix);
  EXPECT_EQ(file->tensors[1].name, "fc.bias");
  EXPECT_EQ(file->tensors[1].values, kBias);
}

TEST(SafetensorsTest, AFlippedBitIsNoticedOrHarmless) {
  const std::string whole = Example();
  const TensorFile expected = DecodeSafetensors(whole).value();
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    const auto file = DecodeSafetensors(bytes);
    if (!file.ok()) {
      continue;
    }
    ASSERT_EQ(file->tensors.size(), expected.tensors.size()) << bit;
    for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
      EXPECT_EQ(file->tensors[i].name, expected.tensors[i].name) << bit;
      EXPECT_EQ(file->tensors[i].values, expected.tensors[i].values) << bit;
    }
    EXPECT_EQ(file->metadata.at("job"), expected.metadata.at("job")) << bit;
  }
  std::string bytes = whole;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const auto file = DecodeSafetensors(bytes);
  EXPECT_TRUE(absl::IsDataLoss(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("checksum"));
}

TEST(SafetensorsTest, DataStartsAtAMultipleOfEightBytes) {
  for (std::size_t length = 1; length < 10; ++length) {
    const auto bytes = EncodeSafetensors({{std::string(length, 'n'), {2}, kBias}}, {});
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ((bytes->size() - sizeof(float) * kBias.size()) % 8, 0u);
    EXPECT_TRUE(DecodeSafetensors(*bytes).ok());
  }
}

TEST(SafetensorsTest, EmptyTensorsAndFilesAreFine) {
  EXPECT_TRUE(DecodeSafetensors(EncodeSafetensors({}, {}).value()).ok());
  const auto file = DecodeSafetensors(EncodeSafetensors({{"none", {0, 3}, {}}}, {}).value());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors[0].shape, (Shape{0, 3}));
}

TEST(SafetensorsTest, WriterRefusesWhatDoesNotFit) {
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeSafetensors({{"a", {7}, kMatrix}}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      EncodeSafetensors({{"a", {2}, kBias}, {"a", {2}, kBias}}, {}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(EncodeSafetensors({{"__metadata__", {2}, kBias}}, {}).status()));
}

TEST(SafetensorsTest, ReaderRefusesBrokenFiles) {
  const std::vector<std::pair<std::string, std::string>> broken = {
      {"empty", ""},
      {"7 bytes", std::string(7, '\0')},
      {"header longer than the file", File("{}", 0).substr(0, 9)},
      {"huge header", std::string(8, '\xff') + "{}"},
      {"no JSON", File("{", 0)},
      {"no object", File("[]", 0)},
      {"deep nesting", File(std::string(100'000, '['), 0)},
      {"deep nesting that ends",
       File(R"({"a":{"dtype":)" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}}",
            0)},
      {"repeated key",
       File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
            R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
            4)},
      {"no offsets", File(R"({"a":{"dtype":"F32","shape":[1]}})", 4)},
      {"three offsets", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}})", 4)},
      {"reversed offsets", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4)},
      {"negative extent", File(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)},
      {"fraction", File(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4)},
      {"beyond the file", File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4)},
      {"offsets differ from shape",
       File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)},
      {"product overflows",
       File(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0)},
      {"overlap",
       File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
            12)},
      {"gap",
       File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
            R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
            12)},
      {"rest", File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5)},
      {"metadata no object", File(R"({"__metadata__":3})", 0)},
      {"metadata no string", File(R"({"__metadata__":{"a":3}})", 0)},
  };
  for (const auto& [what, bytes] : broken) {
    const absl::Status status = DecodeSafetensors(bytes).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << what << ": " << status;
  }
}

TEST(SafetensorsTest, AHeaderOfTooManyTensorsIsRefused) {
  const auto with = [](int tensors) {
    std::string header = "{";
    for (int i = 0; i < tensors; ++i) {
      header += (i == 0 ? R"("t)" : R"(,"t)") + std::to_string(i) +
                R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    }
    return DecodeSafetensors(File(header + "}", 0)).status();
  };
  EXPECT_TRUE(with(4096).ok());
  EXPECT_TRUE(absl::IsDataLoss(with(4097)));
}

TEST(SafetensorsTest, OtherTypesAreNamed) {
  const auto file =
      DecodeSafetensors(File(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 4));
  EXPECT_TRUE(absl::IsUnimplemented(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("F16"));
}

TEST(SafetensorsTest, DamagedFilesNeverCrashTheReader) {
  const std::string good = Example();
  Rng rng(4);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    bytes[rng.Below(bytes.size())] = static_cast<char>(rng());
    bytes.resize(rng.Below(4) == 0 ? rng.Below(bytes.size()) : bytes.size());
    DecodeSafetensors(bytes).status().IgnoreError();
  }
}

TEST(SafetensorsTest, FilesAreReadBackAndErrorsNameThem) {
  const std::string path = testing::TempDir() + "safetensors_test.safetensors";
  ASSERT_TRUE(WriteSafetensors(path, {{"b", {2}, kBias}}, {}).ok());
  const auto file = ReadSafetensors(path, 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->tensors[0].values, ElementsAre(-0.5F, 1e-30F));
  std::filesystem::resize_file(path, 20);
  const absl::Status status = ReadSafetensors(path, 1 << 20).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace adamant::exports
