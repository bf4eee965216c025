#include "services/common/service/outbox.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

namespace adamant::service {
namespace {

v1::MemberMessage EpochEnded(std::uint64_t epoch) {
  v1::MemberMessage message;
  message.mutable_epoch_ended()->set_epoch(epoch);
  return message;
}

v1::MemberMessage Heartbeat(std::uint64_t examples) {
  v1::MemberMessage message;
  message.mutable_heartbeat()->mutable_worker()->set_trained_examples(examples);
  return message;
}

TEST(OutboxTest, MessagesLeaveInOrder) {
  Outbox outbox;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_TRUE(outbox.Push(EpochEnded(epoch)));
  }
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_EQ(outbox.Take()->epoch_ended().epoch(), epoch);
  }
}

TEST(OutboxTest, NewHeartbeatTakesThePlaceOfTheWaitingOne) {
  Outbox outbox;
  outbox.Push(Heartbeat(1));
  outbox.Push(EpochEnded(1));
  outbox.Push(Heartbeat(2));
  outbox.Close();
  EXPECT_TRUE(outbox.Take()->has_epoch_ended());
  EXPECT_EQ(outbox.Take()->heartbeat().worker().trained_examples(), 2u);
  EXPECT_FALSE(outbox.Take().has_value());
}

TEST(OutboxTest, FullOutboxDropsTheOldestAndSaysSo) {
  Outbox outbox;
  for (std::uint64_t epoch = 0; epoch < Outbox::kMaxMessages; ++epoch) {
    EXPECT_TRUE(outbox.Push(EpochEnded(epoch)));
  }
  EXPECT_FALSE(outbox.Push(EpochEnded(Outbox::kMaxMessages)));
  EXPECT_EQ(outbox.Take()->epoch_ended().epoch(), 1u);
}

TEST(OutboxTest, InterruptKeepsTheMessages) {
  Outbox outbox;
  outbox.Push(EpochEnded(1));
  outbox.Interrupt();
  EXPECT_FALSE(outbox.Take().has_value());
  outbox.Resume();
  EXPECT_TRUE(outbox.Take().has_value());
}

TEST(OutboxTest, IsFinishedWhenClosedAndEmpty) {
  Outbox outbox;
  outbox.Push(EpochEnded(1));
  EXPECT_FALSE(outbox.finished());
  outbox.Close();
  EXPECT_FALSE(outbox.finished());
  EXPECT_TRUE(outbox.Take().has_value());
  EXPECT_TRUE(outbox.finished());
}

TEST(OutboxTest, WaitingTakeIsWokenByPushInterruptAndClose) {
  Outbox outbox;
  auto take = [&] { return std::async(std::launch::async, [&] { return outbox.Take(); }); };
  auto taken = take();
  outbox.Push(EpochEnded(1));
  EXPECT_TRUE(taken.get().has_value());
  taken = take();
  outbox.Interrupt();
  EXPECT_FALSE(taken.get().has_value());
  outbox.Resume();
  taken = take();
  outbox.Close();
  EXPECT_FALSE(taken.get().has_value());
}

TEST(OutboxTest, NothingIsLostBetweenThreads) {
  Outbox outbox;
  std::vector<std::jthread> senders;
  for (int t = 0; t < 4; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        outbox.Push(EpochEnded(1));
      }
    });
  }
  for (int i = 0; i < 800; ++i) {
    ASSERT_TRUE(outbox.Take().has_value());
  }
}

}  // namespace
}  // namespace adamant::service
