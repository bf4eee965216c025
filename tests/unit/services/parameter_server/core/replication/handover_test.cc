#include "services/parameter_server/core/replication/handover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"
#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::milliseconds;
using testing::_;
using testing::StrictMock;

constexpr Holder kHeir{.slot = 1, .incarnation = 3};

class HandoverTest : public testing::Test {
 protected:
  const Clock::TimePoint now_{std::chrono::hours(1)};
  StrictMock<HostMock> host_;
  Configuration configuration_{.epoch = 5};
  EntryLog log_{EntryLog::Logging::kNothing};
  Handover handover_{kBucket, host_, configuration_, log_};
};

TEST_F(HandoverTest, TheHeirIsToldAgainAndAgainUntilTheNextEpoch) {
  EXPECT_CALL(host_, Send(kHeir, _)).Times(2);
  handover_.Begin(kHeir, now_);
  EXPECT_EQ(handover_.NextRelease(), now_ + milliseconds(100));
  handover_.Release(now_ + milliseconds(99));
  handover_.Release(now_ + milliseconds(100));
  handover_.Clear();
  handover_.Release(now_ + milliseconds(200));
  EXPECT_EQ(handover_.NextRelease(), Clock::TimePoint::max());
}

TEST_F(HandoverTest, NothingIsReleasedBeforeTheLogIsCommitted) {
  log_.Keep(std::make_shared<const Entry>(Entry{.lsn = 1}));
  handover_.Begin(kHeir, now_);
  EXPECT_EQ(handover_.NextRelease(), Clock::TimePoint::max());
  log_.CommitNext();
  EXPECT_CALL(host_, Send(kHeir, _));
  handover_.Release(now_);
}

}  // namespace
}  // namespace adamant::parameter_server
