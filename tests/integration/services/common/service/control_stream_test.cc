#include "services/common/service/control_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fakes/fake_controller.h"

namespace adamant::service {
namespace {

using fakes::FakeController;

constexpr BackoffOptions kFast{.initial = std::chrono::milliseconds(1),
                               .max = std::chrono::milliseconds(5)};

protocol::Join WorkerJoin() {
  return {.id = {.role = protocol::Role::kWorker, .slot = 3}, .uid = "some-uid"};
}

v1::ControllerMessage OpenEpoch(DataEpoch epoch) {
  v1::ControllerMessage message;
  message.mutable_open_epoch()->set_epoch(epoch);
  return message;
}

class ControlStreamTest : public testing::Test {
 protected:
  // Joins under incarnation 7 in term 2 of job 1.
  void Join() {
    stream_.Join(WorkerJoin());
    ASSERT_TRUE(controller_->Receive()->has_join());
    controller_->Welcome(2, 7, 1);
    ASSERT_TRUE(std::holds_alternative<v1::Welcome>(stream_.Next()));
  }

  DataEpoch NextEpoch() {
    const auto message = std::get<protocol::ControllerMessage>(stream_.Next());
    return std::get<protocol::OpenEpoch>(message).epoch;
  }

  absl::Status NextEnd() { return std::get<ControlStream::End>(stream_.Next()).status; }

  std::unique_ptr<FakeController> controller_ = std::make_unique<FakeController>();
  ControlStream stream_{controller_->address(), kFast};
};

TEST_F(ControlStreamTest, JoinsAndIsWelcomed) {
  stream_.Join(WorkerJoin());
  const auto join = controller_->Receive();
  ASSERT_TRUE(join.has_value());
  EXPECT_EQ(join->join().format_version(), 1u);
  EXPECT_EQ(join->join().slot(), 3u);
  EXPECT_EQ(join->join().uid(), "some-uid");
  EXPECT_EQ(join->join().incarnation(), 0u);
  controller_->Welcome(2, 7, 1);
  const auto event = stream_.Next();
  EXPECT_EQ(std::get<v1::Welcome>(event).incarnation(), 7u);
}

TEST_F(ControlStreamTest, MessagesGoBothWaysInOrder) {
  Join();
  for (std::uint64_t i = 1; i <= 100; ++i) {
    controller_->Send(OpenEpoch(i));
    stream_.Send(protocol::EpochEnded{i});
  }
  for (std::uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(NextEpoch(), i);
    EXPECT_EQ(controller_->Receive()->epoch_ended().epoch(), i);
  }
}

TEST_F(ControlStreamTest, WhatWasQueuedBeforeJoiningIsSentAfterIt) {
  stream_.Send(protocol::EpochEnded{1});
  Join();
  EXPECT_EQ(controller_->Receive()->epoch_ended().epoch(), 1u);
}

TEST_F(ControlStreamTest, BrokenStreamIsJoinedAgainUnderTheSameIncarnation) {
  Join();
  controller_->Break();
  EXPECT_FALSE(controller_->Receive().has_value());
  EXPECT_EQ(controller_->Receive()->join().incarnation(), 7u);
  controller_->Welcome(2, 7, 1);
  controller_->Send(OpenEpoch(5));
  EXPECT_TRUE(std::holds_alternative<ControlStream::Away>(stream_.Next()));
  EXPECT_TRUE(std::holds_alternative<ControlStream::Rejoined>(stream_.Next()));
  EXPECT_EQ(NextEpoch(), 5u);  // and no second Welcome
  stream_.Send(protocol::EpochEnded{5});
  EXPECT_EQ(controller_->Receive()->epoch_ended().epoch(), 5u);
}

TEST_F(ControlStreamTest, RestartedControllerIsFoundAgain) {
  Join();
  const std::string address = controller_->address();
  controller_.reset();
  // What is on its way when the stream breaks is lost.
  ASSERT_TRUE(std::holds_alternative<ControlStream::Away>(stream_.Next()));
  stream_.Send(protocol::EpochEnded{1});
  controller_ = std::make_unique<FakeController>(address);
  EXPECT_EQ(controller_->Receive()->join().incarnation(), 7u);
  controller_->Welcome(3, 7, 1);
  EXPECT_EQ(controller_->Receive()->epoch_ended().epoch(), 1u);
}

TEST_F(ControlStreamTest, LowerTermIsNotFollowed) {
  Join();
  controller_->Break();
  EXPECT_FALSE(controller_->Receive().has_value());
  EXPECT_TRUE(controller_->Receive()->has_join());
  controller_->Welcome(1, 7, 1);
  EXPECT_FALSE(controller_->Receive().has_value());  // the stream hangs up
  EXPECT_TRUE(controller_->Receive()->has_join());   // and tries again
  controller_->Welcome(2, 7, 1);
  controller_->Send(OpenEpoch(4));
  EXPECT_TRUE(std::holds_alternative<ControlStream::Away>(stream_.Next()));
  EXPECT_TRUE(std::holds_alternative<ControlStream::Rejoined>(stream_.Next()));
  EXPECT_EQ(NextEpoch(), 4u);
}

// Two controllers, and a stream that is told of both.
class TwoControllersTest : public testing::Test {
 protected:
  FakeController old_;
  FakeController other_;
};

TEST_F(TwoControllersTest, TheOneThatListensIsFound) {
  const std::string gone = FakeController().address();
  ControlStream stream(gone + "," + other_.address(), kFast);
  stream.Join(WorkerJoin());
  EXPECT_TRUE(other_.Receive()->has_join());
}

TEST_F(TwoControllersTest, AMemberLeavesAControllerThatWasReplaced) {
  ControlStream stream(
      old_.address() + "," + other_.address(), kFast, std::chrono::milliseconds(5));
  stream.Join(WorkerJoin());
  ASSERT_TRUE(old_.Receive()->has_join());
  old_.Welcome(2, 7, 1);
  ASSERT_TRUE(std::holds_alternative<v1::Welcome>(stream.Next()));
  other_.SetTerm(3);
  EXPECT_FALSE(old_.Receive().has_value());
  EXPECT_EQ(other_.Receive()->join().incarnation(), 7u);
  other_.Welcome(3, 7, 1);
  EXPECT_TRUE(std::holds_alternative<ControlStream::Away>(stream.Next()));
  EXPECT_TRUE(std::holds_alternative<ControlStream::Rejoined>(stream.Next()));
}

TEST_F(ControlStreamTest, AnotherIncarnationAtReconnectEndsTheProcess) {
  Join();
  controller_->Break();
  EXPECT_FALSE(controller_->Receive().has_value());
  EXPECT_TRUE(controller_->Receive()->has_join());
  EXPECT_TRUE(std::holds_alternative<ControlStream::Away>(stream_.Next()));
  controller_->Welcome(2, 8, 1);
  EXPECT_TRUE(absl::IsAborted(NextEnd()));
}

TEST_F(ControlStreamTest, RefusalEndsTheProcessWithItsReason) {
  stream_.Join(WorkerJoin());
  ASSERT_TRUE(controller_->Receive()->has_join());
  v1::ControllerMessage refused;
  refused.mutable_refused()->set_reason("format version 1, this controller speaks 2");
  controller_->Send(refused);
  const absl::Status status = NextEnd();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.message().find("this controller speaks 2"), std::string_view::npos);
}

TEST_F(ControlStreamTest, StopOvertakesWhatIsQueued) {
  Join();
  controller_->Send(OpenEpoch(1));
  v1::ControllerMessage stop;
  stop.mutable_stop()->set_reason("done");
  controller_->Send(stop);
  while (!std::holds_alternative<ControlStream::End>(stream_.Next())) {
  }
  EXPECT_TRUE(NextEnd().ok());
}

TEST_F(ControlStreamTest, ARequestedStopIsToldOnceAndMessagesGoOn) {
  Join();
  controller_->Send(OpenEpoch(1));
  stream_.RequestStop();
  EXPECT_TRUE(std::holds_alternative<ControlStream::StopRequested>(stream_.Next()));
  EXPECT_EQ(NextEpoch(), 1u);
  EXPECT_FALSE(stream_.NextWithin(std::chrono::milliseconds(1)).has_value());
}

TEST_F(ControlStreamTest, LeaveSendsWhatIsQueuedFirst) {
  Join();
  for (std::uint64_t i = 1; i <= 50; ++i) {
    stream_.Send(protocol::EpochEnded{i});
  }
  stream_.Send(protocol::Leaving{});
  stream_.Leave(std::chrono::seconds(30));
  for (std::uint64_t i = 1; i <= 50; ++i) {
    EXPECT_EQ(controller_->Receive()->epoch_ended().epoch(), i);
  }
  EXPECT_TRUE(controller_->Receive()->has_leaving());
  EXPECT_FALSE(controller_->Receive().has_value());
}

TEST_F(ControlStreamTest, FailureIsReportedAndEndsTheProcess) {
  Join();
  stream_.Fail(absl::DataLossError("shard 3 is damaged"), /*fatal=*/true);
  stream_.Fail(absl::InternalError("later"), /*fatal=*/false);
  EXPECT_TRUE(absl::IsDataLoss(NextEnd()));
  const auto failure = controller_->Receive();
  EXPECT_EQ(failure->failure().message(), "shard 3 is damaged");
  EXPECT_TRUE(failure->failure().fatal());
  stream_.Leave(std::chrono::seconds(30));
  EXPECT_FALSE(controller_->Receive().has_value());
}

TEST_F(ControlStreamTest, DivergenceIsAFailureOfItsOwn) {
  Join();
  stream_.FailDiverged(absl::InvalidArgumentError("training diverged"));
  EXPECT_TRUE(absl::IsInvalidArgument(NextEnd()));
  const auto failure = controller_->Receive();
  EXPECT_EQ(failure->failure().message(), "training diverged");
  EXPECT_TRUE(failure->failure().diverged());
  EXPECT_TRUE(failure->failure().fatal()) << "for controllers that know of no divergence";
}

TEST(MemberAloneTest, LeaveDoesNotWaitForAControllerThatIsAway) {
  ControlStream stream("127.0.0.1:1", kFast);
  stream.Join(WorkerJoin());
  stream.RequestStop();
  stream.Leave(std::chrono::hours(1));
}

}  // namespace
}  // namespace adamant::service
