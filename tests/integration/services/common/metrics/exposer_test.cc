#include "services/common/metrics/exposer.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace adamant::metrics {
namespace {

using testing::HasSubstr;

std::string Get(const std::string& address, const std::string& path) {
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<std::uint16_t>(port));
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(file, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(send(file, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string reply;
  char buffer[4096];
  for (ssize_t got = 0; (got = recv(file, buffer, sizeof(buffer), 0)) > 0;) {
    reply.append(buffer, static_cast<std::size_t>(got));
  }
  close(file);
  return reply;
}

TEST(ExposerTest, ServesTheRegistryOnAPortTheKernelChose) {
  Registry registry;
  registry.AddGauge("adamant_test_level", "Level.").Set(42);
  const auto exposer = Exposer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(exposer.ok()) << exposer.status();
  const std::string reply = Get((*exposer)->address(), "/metrics");
  EXPECT_THAT(reply, HasSubstr("200 OK"));
  EXPECT_THAT(reply, HasSubstr("adamant_test_level 42"));
}

TEST(ExposerTest, TakenPortIsAClearError) {
  Registry registry;
  const auto first = Exposer::Start("127.0.0.1:0", registry);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Exposer::Start((*first)->address(), registry);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
}

}  // namespace
}  // namespace adamant::metrics
