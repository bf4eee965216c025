#include "operator/local/event_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>
#include <variant>
#include <vector>

namespace adamant::local {
namespace {

bool Readable(const EventQueue& queue) {
  pollfd descriptor{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&descriptor, 1, 0) == 1;
}

TEST(EventQueueTest, IsReadableWhileEventsWait) {
  EventQueue queue;
  EXPECT_FALSE(Readable(queue));
  queue.Push(controller::Disconnected{1});
  queue.Push(controller::Disconnected{2});
  EXPECT_TRUE(Readable(queue));
  const auto events = queue.TakeAll();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<controller::Disconnected>(events[1]).connection, 2u);
  EXPECT_FALSE(Readable(queue));
}

TEST(EventQueueTest, KeepsEachThreadsOrder) {
  constexpr controller::ConnectionId kCount = 1000;
  EventQueue queue;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&queue, thread] {
      for (controller::ConnectionId i = 0; i < kCount; ++i) {
        queue.Push(controller::Disconnected{2 * i + static_cast<unsigned>(thread)});
      }
    });
  }
  controller::ConnectionId next[2] = {0, 1};
  for (controller::ConnectionId taken = 0; taken < 2 * kCount;) {
    for (const controller::Event& event : queue.TakeAll()) {
      const auto id = std::get<controller::Disconnected>(event).connection;
      EXPECT_EQ(id, next[id % 2]);
      next[id % 2] += 2;
      ++taken;
    }
  }
}

}  // namespace
}  // namespace adamant::local
