#include "services/common/rpc/stream_guard.h"

#include <gtest/gtest.h>

#include <semaphore>

namespace adamant::rpc {
namespace {

TEST(StreamGuardTest, NoMoreAreLetInThanMayWait) {
  StreamGuard guard({.most_waiting = 2, .most_unnamed = 1});
  auto first = guard.Enter(true, [] {});
  const auto second = guard.Enter(true, [] {});
  EXPECT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(absl::IsUnavailable(guard.Enter(true, [] {}).status()));
  const auto unnamed = guard.Enter(false, [] {});
  EXPECT_TRUE(unnamed.ok()) << "they are counted apart";
  EXPECT_TRUE(absl::IsUnavailable(guard.Enter(false, [] {}).status()));
  first->reset();
  EXPECT_TRUE(guard.Enter(true, [] {}).ok());
}

TEST(StreamGuardTest, OneThatSaysNothingInTimeIsEndedOnce) {
  StreamGuard guard({.hello_time = std::chrono::milliseconds(5)});
  std::counting_semaphore<> ended(0);
  const auto silent = guard.Enter(true, [&] { ended.release(); });
  ended.acquire();
  const auto later = guard.Enter(true, [&] { ended.release(); });
  ended.acquire();
  EXPECT_FALSE(ended.try_acquire());
}

TEST(HostOfPeerTest, IsTheAddressWithoutItsPort) {
  EXPECT_EQ(HostOfPeer("ipv4:10.0.0.7:4711"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:[fd00::9]:4711"), "fd00::9");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfd00::9%5D:4711"), "fd00::9");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::ffff:10.0.0.7%5D:4711"), "10.0.0.7");
  EXPECT_EQ(HostOfPeer("ipv6:%5Bfe80::9%25eth0%5D:4711"), "fe80::9");
  EXPECT_EQ(HostOfPeer("unix:/tmp/socket"), "");
  EXPECT_EQ(HostOfPeer(""), "");
}

}  // namespace
}  // namespace adamant::rpc
