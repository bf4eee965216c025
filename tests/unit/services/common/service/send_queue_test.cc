#include "services/common/service/send_queue.h"

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

TEST(SendQueueTest, MessagesLeaveInOrder) {
  SendQueue queue;
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_TRUE(queue.Push(EpochEnded(epoch)));
  }
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    EXPECT_EQ(queue.Take()->epoch_ended().epoch(), epoch);
  }
}

TEST(SendQueueTest, NewHeartbeatTakesThePlaceOfTheWaitingOne) {
  SendQueue queue;
  queue.Push(Heartbeat(1));
  queue.Push(EpochEnded(1));
  queue.Push(Heartbeat(2));
  queue.Close();
  EXPECT_TRUE(queue.Take()->has_epoch_ended());
  EXPECT_EQ(queue.Take()->heartbeat().worker().trained_examples(), 2u);
  EXPECT_FALSE(queue.Take().has_value());
}

TEST(SendQueueTest, FullQueueDropsTheOldestAndSaysSo) {
  SendQueue queue;
  for (std::uint64_t epoch = 0; epoch < SendQueue::kMaxMessages; ++epoch) {
    EXPECT_TRUE(queue.Push(EpochEnded(epoch)));
  }
  EXPECT_FALSE(queue.Push(EpochEnded(SendQueue::kMaxMessages)));
  EXPECT_EQ(queue.Take()->epoch_ended().epoch(), 1u);
}

TEST(SendQueueTest, InterruptKeepsTheMessages) {
  SendQueue queue;
  queue.Push(EpochEnded(1));
  queue.Interrupt();
  EXPECT_FALSE(queue.Take().has_value());
  queue.Resume();
  EXPECT_TRUE(queue.Take().has_value());
}

TEST(SendQueueTest, IsFinishedWhenClosedAndEmpty) {
  SendQueue queue;
  queue.Push(EpochEnded(1));
  EXPECT_FALSE(queue.finished());
  queue.Close();
  EXPECT_FALSE(queue.finished());
  EXPECT_TRUE(queue.Take().has_value());
  EXPECT_TRUE(queue.finished());
}

TEST(SendQueueTest, WaitingTakeIsWokenByPushInterruptAndClose) {
  SendQueue queue;
  auto take = [&] { return std::async(std::launch::async, [&] { return queue.Take(); }); };
  auto taken = take();
  queue.Push(EpochEnded(1));
  EXPECT_TRUE(taken.get().has_value());
  taken = take();
  queue.Interrupt();
  EXPECT_FALSE(taken.get().has_value());
  queue.Resume();
  taken = take();
  queue.Close();
  EXPECT_FALSE(taken.get().has_value());
}

TEST(SendQueueTest, NothingIsLostBetweenThreads) {
  SendQueue queue;
  std::vector<std::jthread> senders;
  for (int t = 0; t < 4; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        queue.Push(EpochEnded(1));
      }
    });
  }
  for (int i = 0; i < 800; ++i) {
    ASSERT_TRUE(queue.Take().has_value());
  }
}

}  // namespace
}  // namespace adamant::service
