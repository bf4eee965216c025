#include "services/parameter_server/core/replication/primary_transfer.h"

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

constexpr ServerId kSuccessor{.slot = 1, .incarnation = 3};

class PrimaryTransferTest : public testing::Test {
 protected:
  const Clock::TimePoint now_{std::chrono::hours(1)};
  StrictMock<HostMock> host_;
  Configuration configuration_{.version = 5};
  EntryLog log_{EntryLog::Logging::kNothing};
  PrimaryTransfer transfer_{kBucket, host_, configuration_, log_};
};

TEST_F(PrimaryTransferTest, TheSuccessorIsToldAgainAndAgainUntilTheNextConfiguration) {
  EXPECT_CALL(host_, Send(kSuccessor, _)).Times(2);
  transfer_.Begin(kSuccessor, now_);
  EXPECT_EQ(transfer_.NextRelease(), now_ + milliseconds(100));
  transfer_.Release(now_ + milliseconds(99));
  transfer_.Release(now_ + milliseconds(100));
  transfer_.Clear();
  transfer_.Release(now_ + milliseconds(200));
  EXPECT_EQ(transfer_.NextRelease(), Clock::TimePoint::max());
}

TEST_F(PrimaryTransferTest, NothingIsReleasedBeforeTheLogIsCommitted) {
  log_.Keep(std::make_shared<const Entry>(Entry{.lsn = 1}));
  transfer_.Begin(kSuccessor, now_);
  EXPECT_EQ(transfer_.NextRelease(), Clock::TimePoint::max());
  log_.CommitNext();
  EXPECT_CALL(host_, Send(kSuccessor, _));
  transfer_.Release(now_);
}

}  // namespace
}  // namespace adamant::parameter_server
