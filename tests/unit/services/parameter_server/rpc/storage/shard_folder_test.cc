#include "services/parameter_server/rpc/storage/shard_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/storage/memory_store.h"
#include "tests/unit/services/common/storage/test_folder.h"
#include "tests/unit/services/parameter_server/rpc/recording_link.h"

namespace adamant::parameter_server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::milliseconds kNoPause{0};

absl::Status Full() { return absl::ResourceExhaustedError("/data/shards: no space left"); }

TEST(OpenWithRoomTest, AFullDiskRaisesAnAlarmAndIsTriedAgain) {
  RecordingLink link;
  int tries = 0;
  const auto folder = OpenWithRoom(
      [&]() -> absl::StatusOr<ShardFolder> {
        if (++tries < 3) {
          return Full();
        }
        return ShardFolder{.store = std::make_unique<storage::MemoryStore>()};
      },
      link,
      kNoPause);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_NE(folder->store, nullptr);
  ASSERT_EQ(link.waiting(), 2u);
  const std::string alarm = link.Receive().heartbeat().parameter_server().alarm();
  EXPECT_THAT(alarm, StartsWith("disk full: "));
  EXPECT_THAT(alarm, HasSubstr("/data/shards"));
}

TEST(OpenShardFolderTest, WhatIsNoFolderGoesAsideAndAnEmptyOneBegins) {
  const TestFolder root;
  const std::filesystem::path folder = root.path() / "shards";
  ASSERT_EQ(mkfifo(folder.c_str(), 0600), 0);
  const auto opened = OpenShardFolder(folder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->damage, HasSubstr(folder.string() + ": is a FIFO"));
  EXPECT_TRUE(opened->store->Write({{"key", "value"}}).ok());
  EXPECT_TRUE(std::filesystem::is_fifo(root.path() / "shards.damaged"));
}

TEST(OpenShardFolderTest, ALinkThatLeadsNowhereGoesAsideWithTheStoreThatItIsIn) {
  for (const std::string name : {"", "records", "segments"}) {
    const TestFolder root;
    const std::filesystem::path folder = root.path() / "shards";
    const std::filesystem::path link = name.empty() ? folder : folder / name;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink("/nowhere/at/all", link);
    const auto opened = OpenShardFolder(folder);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(opened->damage, HasSubstr(link.string() + ": is a link that leads nowhere"));
    EXPECT_TRUE(opened->store->Write({{"key", "value"}}).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(name.empty() ? root.path() / "shards.damaged"
                                                         : root.path() / "shards.damaged" / name));
  }
}

TEST(OpenWithRoomTest, AProcessThatIsToEndDoesNotWait) {
  RecordingLink link;
  int tries = 0;
  const auto folder = OpenWithRoom(
      [&]() -> absl::StatusOr<ShardFolder> {
        if (++tries == 2) {
          link.RequestStop();
        }
        return Full();
      },
      link,
      kNoPause);
  EXPECT_TRUE(absl::IsCancelled(folder.status())) << folder.status();
  EXPECT_EQ(tries, 2);
}

TEST(OpenWithRoomTest, AnotherErrorIsNotWaitedFor) {
  RecordingLink link;
  const auto folder =
      OpenWithRoom([]() -> absl::StatusOr<ShardFolder> { return absl::UnavailableError("in use"); },
                   link,
                   kNoPause);
  EXPECT_TRUE(absl::IsUnavailable(folder.status()));
  EXPECT_EQ(link.waiting(), 0u);
}

}  // namespace
}  // namespace adamant::parameter_server
