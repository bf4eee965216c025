#include "operator/local/run_folder/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "services/common/base/checksum.h"

namespace adamant::local {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

CheckpointManifest Example(std::uint64_t snapshot = 7) {
  return {.job_uid = 0xfedcba9876543210,
          .checkpoint = {.snapshot = snapshot,
                         .epoch = 3,
                         .buckets = {{.slot = 1, .generation = 2, .updates = 40, .checksum = ~0ULL},
                                     {.slot = 0, .generation = 1, .updates = 9, .checksum = 5}},
                         .cuts = {{.worker = 1, .incarnation = 2, .sequence = 33}},
                         .held = std::chrono::milliseconds(120)}};
}

class CheckpointFileTest : public testing::Test {
 protected:
  CheckpointFileTest() {
    std::filesystem::remove_all(paths_.root);
    std::filesystem::create_directories(paths_.root);
  }
  ~CheckpointFileTest() override { std::filesystem::remove_all(paths_.root); }

  const RunPaths paths_{std::filesystem::path(testing::TempDir()) /
                        testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST(ManifestTest, ComesBackAsItWas) {
  const auto decoded = DecodeCheckpointManifest(EncodeCheckpointManifest(Example()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->job_uid, Example().job_uid);
  EXPECT_EQ(decoded->checkpoint, Example().checkpoint);
}

TEST(ManifestTest, ChangedAndMissingTextIsNoticed) {
  const std::string text = EncodeCheckpointManifest(Example());
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      std::string changed = text;
      changed[i] = changed[i] == '9' ? '1' : static_cast<char>(changed[i] + 1);
      EXPECT_FALSE(DecodeCheckpointManifest(changed).ok()) << "byte " << i;
    }
    EXPECT_FALSE(DecodeCheckpointManifest(text.substr(0, i)).ok()) << "cut at " << i;
  }
}

TEST(ManifestTest, WhatWouldExhaustTheStackIsDamage) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const std::string& text :
       {R"({"format_version": )" + deep + R"(, "checksum": "0"})",
        R"({"format_version": 1, "checksum": "0", "job": )" + deep + "}"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeCheckpointManifest(text).status()));
  }
}

TEST(ManifestTest, ANumberThatIsNoCountIsDamage) {
  for (const char* number : {"-1", "1e300", "1.5"}) {
    auto json = nlohmann::ordered_json::parse(EncodeCheckpointManifest(Example()));
    json.erase("checksum");
    json["snapshot"] = nlohmann::ordered_json::parse(number);
    const std::string text = json.dump();
    json["checksum"] = HexChecksum(std::as_bytes(std::span(text)));
    const absl::Status status = DecodeCheckpointManifest(json.dump()).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no count"));
  }
}

TEST(ManifestTest, AnotherFormatVersionIsRefusedNamingBoth) {
  const absl::Status status =
      DecodeCheckpointManifest("{\"format_version\": 9, \"checksum\": \"0\"}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("version 9"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reads 1"));
}

TEST_F(CheckpointFileTest, OnlyTheNewestAndTheOneThatIsKeptRemain) {
  for (std::uint64_t snapshot = 1; snapshot <= 4; ++snapshot) {
    ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(snapshot), /*keep=*/2).ok());
  }
  const auto manifests = ReadCheckpointManifests(paths_);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_THAT(*manifests, SizeIs(2));
  EXPECT_EQ((*manifests)[0].checkpoint.snapshot, 4u);
  EXPECT_EQ((*manifests)[1].checkpoint.snapshot, 2u);
}

TEST_F(CheckpointFileTest, NoneRemainsWhereThereIsNoCheckpointAnyMore) {
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(1), 0).ok());
  ASSERT_TRUE(WriteCheckpointManifest(paths_, CheckpointManifest{}, 0).ok());
  EXPECT_EQ(ReadCheckpointManifests(paths_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(paths_.checkpoints()));
}

TEST_F(CheckpointFileTest, DamagedManifestsAreLeftOut) {
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(1), 0).ok());
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(2), 1).ok());
  std::ofstream(paths_.checkpoint(2)) << "{";
  const auto manifests = ReadCheckpointManifests(paths_);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_THAT(*manifests, SizeIs(1));
  EXPECT_EQ((*manifests)[0].checkpoint.snapshot, 1u);
  EXPECT_TRUE(ReadCheckpointManifest(paths_, 1).ok());
  EXPECT_TRUE(absl::IsNotFound(ReadCheckpointManifest(paths_, 3).status()));
  const absl::Status damaged = ReadCheckpointManifest(paths_, 2).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(paths_.checkpoint(2).string()));
}

TEST_F(CheckpointFileTest, WhereAllManifestsAreDamagedThatIsTold) {
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(1), 0).ok());
  std::ofstream(paths_.checkpoint(1)) << "{";
  const absl::Status status = ReadCheckpointManifests(paths_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(paths_.checkpoint(1).string()));
}

TEST_F(CheckpointFileTest, ARunWithoutCheckpointsSaysSo) {
  EXPECT_EQ(ReadCheckpointManifests(paths_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointFileTest, AFolderThatIsGoneOrNoneIsNoRunWithoutCheckpoints) {
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(1), 0).ok());
  std::ofstream(paths_.started()) << "";
  std::filesystem::remove_all(paths_.checkpoints());
  const absl::Status gone = ReadCheckpointManifests(paths_).status();
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
  EXPECT_THAT(std::string(gone.message()),
              HasSubstr(paths_.checkpoints().string() + ": is not there"));
  std::ofstream(paths_.checkpoints()) << "";
  const absl::Status file = ReadCheckpointManifests(paths_).status();
  EXPECT_TRUE(absl::IsDataLoss(file)) << file;
  EXPECT_THAT(std::string(file.message()),
              HasSubstr("is a file, where a folder belongs; move it away"));
}

TEST_F(CheckpointFileTest, CopiesOfCheckpointsLieBesideTheManifestsAndStay) {
  std::filesystem::create_directories(paths_.copy_of(6));
  std::filesystem::create_directories(paths_.copy_of(7));
  ASSERT_TRUE(WriteCheckpointManifest(paths_, Example(7), 0).ok());
  const auto manifests = ReadCheckpointManifests(paths_);
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  EXPECT_THAT(*manifests, SizeIs(1));
  EXPECT_TRUE(std::filesystem::exists(paths_.copy_of(6)));
  EXPECT_TRUE(std::filesystem::exists(paths_.copy_of(7)));
}

}  // namespace
}  // namespace adamant::local
