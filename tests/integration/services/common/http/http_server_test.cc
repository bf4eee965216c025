#include "services/common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/services/common/http/http_client.h"

namespace adamant::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Response Echo(const Request& request) {
  Response response{.code = 200, .body = "this is " + std::string(request.path)};
  for (const auto& [name, value] : request.arguments) {
    response.body.append(", ").append(name).append(" is ").append(value);
  }
  return response;
}

std::unique_ptr<HttpServer> Start(const std::string& address = "127.0.0.1:0") {
  auto server = HttpServer::Start(address, Echo);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::vector<std::unique_ptr<Connection>> Connect(const HttpServer& server, int count) {
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < count; ++i) {
    connections.push_back(std::make_unique<Connection>(server.address()));
  }
  return connections;
}

TEST(HttpServerTest, AnswersAPathAndItsArguments) {
  const auto server = Start();
  const std::string reply = Get(server->address(), "/a?b=c&d=%201&e");
  EXPECT_THAT(reply, HasSubstr(" 200 OK"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nthis is /a, b is c, d is  1, e is "));
}

TEST(HttpServerTest, RefusesWhatIsNoGet) {
  const auto server = Start();
  const Connection connection(server->address());
  connection.Send("DELETE /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(connection.ReadToEnd(), HasSubstr(" 405 "));
}

TEST(HttpServerTest, AnswersWhileOthersSayNothingOrHalfARequest) {
  const auto server = Start();
  const auto silent = Connect(*server, 50);
  for (std::size_t i = 0; i < silent.size(); i += 2) {
    silent[i]->Send("GET /met");
  }
  EXPECT_THAT(Get(server->address(), "/a"), HasSubstr("this is /a"));
}

TEST(HttpServerTest, OldestConnectionGivesWayWhenThereAreTooMany) {
  const auto server = Start();
  const auto silent = Connect(*server, 300);
  EXPECT_THAT(Get(server->address(), "/a"), HasSubstr("this is /a"));
  EXPECT_THAT(silent.front()->ReadToEnd(),
              IsEmpty());  // at once, not after the ten seconds of a silent one
  silent.back()->Send("GET /late HTTP/1.0\r\n\r\n");
  EXPECT_THAT(silent.back()->ReadToEnd(), HasSubstr("this is /late"));
}

TEST(HttpServerTest, RefusesAHeadThatIsTooLong) {
  const auto server = Start();
  const Connection connection(server->address());
  connection.Send("GET /a HTTP/1.0\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(connection.ReadToEnd(), testing::Not(HasSubstr("this is")));
  EXPECT_THAT(Get(server->address(), "/a"), HasSubstr("this is /a"));
}

TEST(HttpServerTest, ListensAtAnIpv6Address) {
  const auto server = HttpServer::Start("[::1]:0", Echo);
  if (absl::IsUnavailable(server.status())) {
    GTEST_SKIP() << "this machine has no IPv6: " << server.status();
  }
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT((*server)->address(), StartsWith("[::1]:"));
  EXPECT_THAT(Get((*server)->address(), "/a"), HasSubstr("this is /a"));
}

TEST(HttpServerTest, TakenPortIsUnavailableAndNamed) {
  const auto first = Start();
  const auto second = HttpServer::Start(first->address(), Echo);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(first->address()));
}

TEST(HttpServerTest, WhatIsNoAddressIsInvalidAndNamed) {
  for (const std::string address :
       {"", "x", ":80", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1"}) {
    const auto server = HttpServer::Start(address, Echo);
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << address;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("'" + address + "'"));
  }
}

}  // namespace
}  // namespace adamant::http
