#include "services/parameter_server/core/replication/reconfiguration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/services/parameter_server/core/replication/host_mock.h"
#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {
namespace {

using testing::AllOf;
using testing::Field;
using testing::NiceMock;

class ReconfigurationTest : public testing::Test {
 protected:
  ReconfigurationTest() {
    configuration_ = {
        .version = 3, .primary = kSelf, .replicas = {kSelf, kReplica}, .created = true};
    traffic_.BeginConfiguration(kSelf, now_);
  }

  void ExpectProposal(Proposal::Kind kind, const ServerId& subject) {
    EXPECT_CALL(host_,
                Propose(AllOf(Field(&Proposal::kind, kind), Field(&Proposal::subject, subject))));
  }

  static constexpr ServerId kSelf{.slot = 0, .incarnation = 1};
  static constexpr ServerId kReplica{.slot = 1, .incarnation = 1};
  static constexpr ServerId kLearner{.slot = 2, .incarnation = 1};
  const Clock::TimePoint now_{std::chrono::hours(1)};
  NiceMock<HostMock> host_;
  Configuration configuration_;
  EntryLog log_{EntryLog::Logging::kNothing};
  PeerTraffic traffic_{kBucket, {.times = {}, .max_log_bytes = 1000}, host_, configuration_, log_};
  Proposer proposals_{kBucket, kSelf, host_, configuration_, log_};
  Reconfiguration changes_{configuration_, log_, traffic_, proposals_};
};

TEST_F(ReconfigurationTest, WhoIsLostIsDroppedOnce) {
  traffic_.peers().SetDead({kReplica});
  ExpectProposal(Proposal::Kind::kDrop, kReplica);
  changes_.DropLost(now_);
  changes_.DropLost(now_);
}

TEST_F(ReconfigurationTest, ADropIsWithdrawnWhenTheReplicaIsBack) {
  traffic_.peers().SetDead({kReplica});
  changes_.DropLost(now_);
  traffic_.peers().SetDead({});
  changes_.DropLost(now_);
  EXPECT_FALSE(proposals_.drop().has_value());
}

TEST_F(ReconfigurationTest, WhoDepartsIsDroppedThoughItLives) {
  configuration_.departing = kReplica;
  changes_.Drop(kReplica, now_);
  changes_.DropLost(now_);
  EXPECT_TRUE(proposals_.drop().has_value());
}

TEST_F(ReconfigurationTest, ALearnerIsAddedOnceItHasAll) {
  traffic_.BeginCopy(kLearner, now_);
  changes_.AddLearner(0, now_);
  EXPECT_FALSE(proposals_.binding().has_value()) << "its copy is not there";
  ASSERT_TRUE(traffic_.OnCopied(1, now_));
  changes_.AddLearner(1, now_);
  EXPECT_FALSE(proposals_.binding().has_value()) << "it lacks what the primary took over";
  ExpectProposal(Proposal::Kind::kAdd, kLearner);
  changes_.AddLearner(0, now_);
  changes_.AddLearner(0, now_);
  EXPECT_TRUE(traffic_.peers().FindLearner()->proposed);
}

TEST_F(ReconfigurationTest, ALearnerIsAddedOnceItsDiskHasWhatIsOnAllOthers) {
  log_.BeginAt(5, 1);
  traffic_.BeginCopy(kLearner, now_);
  ASSERT_TRUE(traffic_.OnAcknowledged(kReplica, {.acked = 5, .flushed = 5}, now_));
  ASSERT_EQ(traffic_.durable(), 5u);
  ASSERT_TRUE(traffic_.OnCopied(1, now_));
  changes_.AddLearner(0, now_);
  EXPECT_FALSE(proposals_.binding().has_value());
  ASSERT_TRUE(traffic_.OnAcknowledged(kLearner, {.acked = 5, .copy = 1, .flushed = 5}, now_));
  ExpectProposal(Proposal::Kind::kAdd, kLearner);
  changes_.AddLearner(0, now_);
}

}  // namespace
}  // namespace adamant::parameter_server
