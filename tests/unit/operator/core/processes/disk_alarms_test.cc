#include "operator/core/processes/disk_alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace adamant::controller {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SlotId kServer{Role::kParameterServer, 1};
constexpr char kFull[] = "its disk is full";

class DiskAlarmsTest : public testing::Test {
 protected:
  std::string Raise(const std::string& alarm, std::uint64_t counted, seconds at) {
    return alarms_.OnAlarm(
        kServer, alarm, {.begun = true, .counting = true, .counted = counted}, start_ + at);
  }

  std::vector<std::string> Told() {
    std::vector<std::string> texts;
    for (const Action& action : outbox_.Take(JobState{})) {
      texts.push_back(std::get<Note>(action).text);
    }
    return texts;
  }

  const DiskAlarms::TimePoint start_{std::chrono::hours(1)};
  Outbox outbox_;
  DiskAlarms alarms_{outbox_};
};

TEST_F(DiskAlarmsTest, OneThatStaysIsToldAgainEachMinuteAndItsEnd) {
  EXPECT_EQ(Raise(kFull, 1, seconds(0)), "");
  EXPECT_EQ(alarms_.AlarmOf(kServer), kFull);
  EXPECT_THAT(Told(), ElementsAre("parameter-server-1: its disk is full; training goes on"));
  for (int second = 1; second < 60; ++second) {
    EXPECT_EQ(Raise(kFull, 1 + second, seconds(second)), "");
  }
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_EQ(Raise(kFull, 100, seconds(60)), "");
  EXPECT_THAT(Told(),
              ElementsAre("parameter-server-1: its disk is full; training goes on, for 60 s now"));
  EXPECT_EQ(Raise("", 100, seconds(61)), "");
  EXPECT_THAT(Told(), ElementsAre("parameter-server-1: stores again"));
  EXPECT_EQ(alarms_.AlarmOf(kServer), "");
}

TEST_F(DiskAlarmsTest, TheJobFailsWhenNothingIsCountedForItsTime) {
  Raise(kFull, 1, seconds(0));
  Raise(kFull, 2, seconds(10));
  EXPECT_EQ(Raise(kFull, 2, seconds(29)), "");
  EXPECT_EQ(Raise(kFull, 2, seconds(30)),
            "parameter-server-1: its disk is full; nothing can be counted any more");
  alarms_.GrantTime(start_ + seconds(30));
  EXPECT_EQ(Raise(kFull, 2, seconds(49)), "");
}

TEST_F(DiskAlarmsTest, DamageIsToldOnceForEachProcess) {
  StoredBuckets stored;
  stored.buckets.push_back({.complete = false, .detail = "bucket 3: a record is cut"});
  alarms_.OnStored(kServer, stored);
  alarms_.OnStored(kServer, stored);
  EXPECT_THAT(Told(),
              ElementsAre("parameter-server-1: 1 bucket on its disk is not used: bucket 3: a "
                          "record is cut"));
  alarms_.OnDamages(kServer, {"x"});
  alarms_.OnDamages(kServer, {"x", "y"});
  EXPECT_THAT(Told(),
              ElementsAre("parameter-server-1: its disk is damaged: x",
                          "parameter-server-1: its disk is damaged: y"));
  alarms_.Forget(kServer);
  alarms_.OnDamages(kServer, {"x"});
  EXPECT_THAT(Told(), ElementsAre("parameter-server-1: its disk is damaged: x"));
}

}  // namespace
}  // namespace adamant::controller
