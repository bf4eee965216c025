#include "services/worker/core/base/queues.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace adamant::worker {
namespace {

constexpr std::uint64_t kItems = 20000;

TEST(SpscQueueTest, ItemsComeOutInOrderAndTheBoundHolds) {
  SpscQueue<int> queue(3);  // rounded up to 4
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(queue.Room(), static_cast<std::size_t>(4 - i));
    EXPECT_TRUE(queue.Push(i));
  }
  EXPECT_FALSE(queue.Push(4));
  for (int i = 0; i < 4; ++i) {
    ASSERT_NE(queue.Front(), nullptr);
    EXPECT_EQ(*queue.Front(), i);
    queue.Pop();
  }
  EXPECT_EQ(queue.Front(), nullptr);
}

TEST(SpscQueueTest, TwoThreadsPassEveryItemInOrder) {
  SpscQueue<std::uint64_t> queue(8);
  std::jthread producer([&] {
    for (std::uint64_t i = 0; i < kItems;) {
      if (queue.Push(i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (std::uint64_t i = 0; i < kItems;) {
    if (const std::uint64_t* item = queue.Front()) {
      ASSERT_EQ(*item, i++);
      queue.Pop();
    } else {
      std::this_thread::yield();
    }
  }
}

TEST(MpmcQueueTest, ItemsComeOutInOrderAndTheBoundHolds) {
  MpmcQueue<int> queue(2);
  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));
  EXPECT_FALSE(queue.Push(3));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_TRUE(queue.Push(3));
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 3);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(MpmcQueueTest, ThreadsPassEveryItemOnce) {
  MpmcQueue<std::uint64_t> queue(8);
  std::vector<std::atomic<int>> seen(kItems);
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t producer = 0; producer < 2; ++producer) {
    threads.emplace_back([&, producer] {
      for (std::uint64_t i = producer; i < kItems;) {
        if (queue.Push(i)) {
          i += 2;
        } else {
          std::this_thread::yield();
        }
      }
    });
    threads.emplace_back([&] {
      while (taken.load() < kItems) {
        if (const auto item = queue.Pop()) {
          seen[*item].fetch_add(1);
          taken.fetch_add(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  threads.clear();
  for (const auto& count : seen) {
    ASSERT_EQ(count.load(), 1);
  }
}

TEST(NotifierTest, ARingBetweenReadAndWaitIsNotMissed) {
  Notifier notifier;
  const std::uint32_t seen = notifier.Read();
  notifier.Notify();
  notifier.Wait(seen);  // returns
  std::jthread ringer([&] { notifier.Notify(); });
  notifier.Wait(seen + 1);
}

}  // namespace
}  // namespace adamant::worker
