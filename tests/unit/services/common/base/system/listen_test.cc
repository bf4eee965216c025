#include "services/common/base/system/listen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace adamant {
namespace {

using testing::HasSubstr;

class ListenTest : public testing::Test {
 protected:
  ListenTest() { std::filesystem::create_directories(folder_); }
  ~ListenTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("adamant_listen_" + std::to_string(getpid()));
};

TEST_F(ListenTest, OnlyAnAbsolutePathIsAUnixSocket) {
  EXPECT_TRUE(IsUnixSocket("unix:/tmp/a"));
  for (const char* other : {"unix:", "unix:a", "unix:1", "/tmp/a", "127.0.0.1:0", ""}) {
    EXPECT_FALSE(IsUnixSocket(other)) << other;
  }
}

TEST_F(ListenTest, AUnixSocketTakesConnections) {
  const std::string path = folder_ / "a";
  const auto listener = Listen("unix:" + path);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(listener->address, "unix:" + path);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  path.copy(where.sun_path, sizeof(where.sun_path) - 1);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  close(client);
  close(listener->socket);
}

TEST_F(ListenTest, WhatCannotBeListenedAtIsNamed) {
  const std::string nowhere = "unix:" + (folder_ / "none" / "a").string();
  const auto listener = Listen(nowhere);
  EXPECT_TRUE(absl::IsUnavailable(listener.status()));
  EXPECT_THAT(std::string(listener.status().message()),
              HasSubstr(nowhere + ": No such file or directory"));
}

TEST_F(ListenTest, APathHasAtMost107Bytes) {
  std::string path = folder_.string() + "/";
  path.append(kMostSocketPathBytes - path.size(), 'x');
  const auto listener = Listen("unix:" + path);
  ASSERT_TRUE(listener.ok()) << listener.status();
  close(listener->socket);
  const auto longer = Listen("unix:" + path + "x");
  EXPECT_TRUE(absl::IsInvalidArgument(longer.status())) << longer.status();
  EXPECT_THAT(std::string(longer.status().message()), HasSubstr("has 108 bytes"));
}

}  // namespace
}  // namespace adamant
