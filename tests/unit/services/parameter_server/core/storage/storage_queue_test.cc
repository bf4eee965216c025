#include "services/parameter_server/core/storage/storage_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include "tests/fakes/fake_clock.h"
#include "tests/unit/services/parameter_server/core/counting_driver.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class StorageQueueTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  CountingDriver driver_;
  StorageQueue queue_{clock_, driver_};
};

TEST_F(StorageQueueTest, WhatIsTakenIsTakenOnce) {
  EXPECT_EQ(queue_.DueAt(), Clock::TimePoint::max());
  queue_.Unmark(3);
  queue_.Load(4, {.life = 1, .create = true});
  EXPECT_EQ(driver_.storages, 2);
  EXPECT_LE(queue_.DueAt(), clock_.Now());
  const StorageTasks tasks = queue_.Take();
  EXPECT_THAT(tasks.unmarked, ElementsAre(3));
  EXPECT_THAT(tasks.loads, SizeIs(1));
  EXPECT_TRUE(queue_.Take().empty());
}

TEST_F(StorageQueueTest, WhatComesBackIsDoneBeforeWhatCameSince) {
  queue_.Persist({.bucket = 1, .ticket = 1});
  queue_.Put({{.bucket = 1, .key = "a", .lsn = 1}});
  StorageTasks tasks = queue_.Take();
  queue_.Persist({.bucket = 1, .ticket = 2});
  queue_.Put({{.bucket = 1, .key = "b", .lsn = 2}});
  queue_.Return(std::move(tasks));
  tasks = queue_.Take();
  ASSERT_THAT(tasks.persists, SizeIs(2));
  EXPECT_EQ(tasks.persists[0].ticket, 1u);
  ASSERT_THAT(tasks.puts, SizeIs(2));
  EXPECT_EQ(tasks.puts[0].key, "a");
}

TEST_F(StorageQueueTest, ANewerLoadStaysWhenAnOlderOneComesBack) {
  queue_.Load(1, {.life = 1});
  StorageTasks tasks = queue_.Take();
  queue_.Load(1, {.life = 2});
  queue_.Return(std::move(tasks));
  EXPECT_EQ(queue_.Take().loads.at(1).life, 2u);
}

TEST_F(StorageQueueTest, OfABucketThatHasGoneOnlyWhatIsAnsweredStays) {
  queue_.Load(1, {});
  queue_.Install(1, 5);
  queue_.Persist({.bucket = 1});
  queue_.Persist({.bucket = 2});
  queue_.Put({{.bucket = 1, .key = "a", .lsn = 1}});
  queue_.Forget(1);
  const StorageTasks tasks = queue_.Take();
  EXPECT_THAT(tasks.loads, IsEmpty());
  EXPECT_THAT(tasks.installs, IsEmpty());
  EXPECT_THAT(tasks.persists, SizeIs(1));
  EXPECT_THAT(tasks.puts, SizeIs(1));
}

TEST_F(StorageQueueTest, TheLowestPutIsThatOfTheLog) {
  queue_.Put({{.bucket = 1, .key = "a", .lsn = 7},
              {.bucket = 1, .key = "b", .lsn = 4},
              {.bucket = 1, .key = "written anew"}});
  queue_.Put({{.bucket = 2, .key = "written anew"}});
  EXPECT_THAT(queue_.LowestPuts(), ElementsAre(Pair(1, 4)));
}

TEST_F(StorageQueueTest, ACopyThatIsNeededOnceStaysNeeded) {
  queue_.Repair(1, 2, {.why = absl::DataLossError("first"), .is_needed = true});
  queue_.Repair(1, 2, {.why = absl::DataLossError("second")});
  const StorageTasks tasks = queue_.Take();
  ASSERT_THAT(tasks.unreadable, SizeIs(1));
  EXPECT_EQ(tasks.unreadable.begin()->second.why.message(), "second");
  EXPECT_TRUE(tasks.unreadable.begin()->second.is_needed);
}

TEST_F(StorageQueueTest, OnAFullDiskTheRestWaitsAndAnAlarmTells) {
  queue_.Unmark(1);
  queue_.RaiseDiskFull(absl::ResourceExhaustedError("no space left"));
  EXPECT_EQ(queue_.DueAt(), clock_.Now() + seconds(1));
  EXPECT_THAT(queue_.alarm(), ::testing::HasSubstr("disk full"));
  queue_.ClearAlarm();
  EXPECT_EQ(queue_.alarm(), "");
}

}  // namespace
}  // namespace adamant::parameter_server
