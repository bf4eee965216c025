#include "operator/kube_client/base/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/kube/scripted_api_server.h"
#include "tests/unit/operator/kube_client/http/transport_rig.h"

namespace adamant::kube {
namespace {

using fakes::Reply;
using fakes::ScriptedApiServer;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr milliseconds kLong{20'000};
constexpr milliseconds kShort{200};

TEST(TransportTest, ARequestAndItsAnswerArriveWhole) {
  ScriptedApiServer server;
  server.Once("POST /api/v1/pods?dryRun=All&x=a%3Db", Reply::Json(201, R"({"kind":"Pod"})"));
  TransportRig transport(ConfigFor(server));
  const auto response = transport->Send({.method = "POST",
                                         .target = "/api/v1/pods?dryRun=All&x=a%3Db",
                                         .headers = {{"content-type", "application/json"}},
                                         .body = R"({"a":1})"},
                                        Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, R"({"kind":"Pod"})");
  EXPECT_EQ(response->headers.at("content-type"), "application/json");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].target, "/api/v1/pods?dryRun=All&x=a%3Db");
  EXPECT_EQ(requests[0].body, R"({"a":1})");
  EXPECT_EQ(requests[0].headers.at("content-type"), "application/json");
  EXPECT_EQ(requests[0].headers.at("user-agent"), "adamant");
  EXPECT_EQ(requests[0].headers.at("host"), server.url().substr(8));
}

TEST(TransportTest, ABodyOfManyPiecesArrivesWhole) {
  ScriptedApiServer server;
  const std::string body(3'000'000, 'x');
  server.Once("PUT ", Reply::Json(200, body));
  TransportRig transport(ConfigFor(server));
  const auto response =
      transport->Send({.method = "PUT", .target = "/x", .body = body}, Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(response->body == body);  // not to be printed
  EXPECT_TRUE(server.requests()[0].body == body);
}

TEST(TransportTest, AnAddressOfIPv6IsReached) {
  ScriptedApiServer server({.host = "::1"});
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server));
  const auto response = transport.Get("/version");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests()[0].headers.at("host"), "[::1]:" + std::to_string(server.port()));
}

TEST(TransportTest, OfTheAddressesOfANameOneIsEnough) {
  ScriptedApiServer server;  // on 127.0.0.1, and not on ::1
  server.Always("", Reply::Json(200, "{}"));
  Config config = ConfigFor(server);
  config.server.host = "localhost";
  TransportRig transport(config);
  const auto response = transport.Get("/version");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests()[0].server_name, "localhost");
}

TEST(TransportTest, ThePathOfTheServersUrlIsKept) {
  ScriptedApiServer server;
  server.Once("GET /clusters/east/api?limit=1", Reply::Json(200, "{}"));
  Config config = ConfigFor(server);
  config.server.path = "/clusters/east";
  TransportRig transport(config);
  const auto response = transport.Get("/api?limit=1");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
}

TEST(TransportTest, AServerWithoutTlsIsReached) {
  ScriptedApiServer server({.tls = false});
  server.Always("", Reply::Json(200, "{}"));
  Config config;
  config.server = *ParseEndpoint(server.url());
  TransportRig transport(config);
  for (int i = 0; i < 2; ++i) {
    const auto response = transport.Get("/version");
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
  }
}

TEST(TransportTest, TheClientsCertificateIsShown) {
  ScriptedApiServer server({.ask_for_client_certificate = true});
  server.Always("", Reply::Json(200, "{}"));
  Config config = ConfigFor(server);
  EXPECT_TRUE(absl::IsUnavailable(TransportRig(config).Get("/").status()));
  const fakes::KeyPair client = server.authority().Issue({.common_name = "system:admin"});
  config.certificate.text = client.certificate;
  config.key.text = client.key;
  TransportRig transport(config);
  const auto response = transport.Get("/");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests().back().client, "system:admin");
}

TEST(TransportTest, ProxiesOfTheEnvironmentAreNotUsed) {
  setenv("https_proxy", "http://127.0.0.1:1", 1);
  setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  EXPECT_TRUE(TransportRig(ConfigFor(server)).Get("/").ok());
}

TEST(TransportTest, ErrorsOfHttpAndRedirectsAreResponses) {
  ScriptedApiServer server;
  server.Once("", Reply::Json(429, "{}", {{"Retry-After", "7"}}));
  server.Once("", Reply::Json(500, R"({"message":"etcd is gone"})"));
  server.Once("", Reply::Json(307, "", {{"Location", "https://127.0.0.1:1/"}}));
  TransportRig transport(ConfigFor(server));
  const auto busy = transport.Get("/");
  ASSERT_TRUE(busy.ok()) << busy.status();
  EXPECT_EQ(busy->status, 429);
  EXPECT_EQ(busy->headers.at("retry-after"), "7");
  const auto broken = transport.Get("/");
  ASSERT_TRUE(broken.ok()) << broken.status();
  EXPECT_EQ(broken->body, R"({"message":"etcd is gone"})");
  const auto moved = transport.Get("/");
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->status, 307);
}

TEST(TransportTest, ConnectionsAreUsedAgain) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server));
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(transport.Get("/").ok());
  }
  // The library puts a connection back a moment after the answer's end: two may take turns.
  EXPECT_LE(server.requests().back().connection, 3);
}

/// The timers that the kernel has for connections to `port`: 2 stands for keep-alive probes.
std::vector<int> TimersOfConnectionsTo(int port) {
  std::ifstream table("/proc/self/net/tcp");
  std::vector<int> timers;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    unsigned to = 0;
    unsigned state = 0;
    unsigned timer = 0;
    std::sscanf(line.c_str(), "%*d: %*x:%*x %*x:%x %x %*x:%*x %x:", &to, &state, &timer);
    constexpr unsigned kEstablished = 1;
    if (to == static_cast<unsigned>(port) && state == kEstablished) {
      timers.push_back(static_cast<int>(timer));
    }
  }
  return timers;
}

TEST(TransportTest, TheKernelWatchesConnectionsOver) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server));
  ASSERT_TRUE(transport.Get("/").ok());
  EXPECT_THAT(TimersOfConnectionsTo(server.port()), ElementsAre(2));
}

TEST(TransportTest, ARequestDoesNotFailByConnectionsThatTheServerHasClosed) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server));
  ASSERT_TRUE(transport.Get("/").ok());
  server.CloseIdleConnections();
  ASSERT_TRUE(server.WaitForConnections(0));
  const auto response =
      transport->Send({.method = "POST", .target = "/", .body = "{}"}, Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(server.requests().back().connection, 2);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST(TransportTest, ARequestWithABodyIsNeverSentTwice) {
  ScriptedApiServer server;
  server.Once("GET ", Reply::Json(200, "{}"));
  server.Always("POST ", Reply::Raw("").Cut());
  TransportRig transport(ConfigFor(server));
  ASSERT_TRUE(transport.Get("/").ok());
  const auto response =
      transport->Send({.method = "POST", .target = "/", .body = "{}"}, Cancellation());
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST(TransportTest, ARestartedServerIsReachedAgain) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server), {.absence = std::chrono::milliseconds(0)});
  ASSERT_TRUE(transport.Get("/").ok());
  server.Refuse(true);
  server.CutConnections();
  ASSERT_TRUE(server.WaitForConnections(0));
  EXPECT_TRUE(absl::IsUnavailable(transport.Get("/").status()));
  server.Refuse(false);
  EXPECT_TRUE(transport.Get("/").ok());
}

TEST(TransportTest, AServerThatWasNotThereIsLeftAloneForAWhile) {
  ScriptedApiServer server;
  server.Always("", Reply::Json(200, "{}"));
  TransportRig transport(ConfigFor(server), {.absence = std::chrono::hours(1)});
  server.Refuse(true);
  const absl::Status first = transport.Get("/").status();
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  server.Refuse(false);
  EXPECT_EQ(transport.Get("/").status(), first);
  EXPECT_TRUE(TransportRig(ConfigFor(server)).Get("/").ok());
}

TEST(TransportTest, AServerThatRefusesConnectionsIsNamed) {
  int port = 0;
  {
    const ScriptedApiServer server;
    port = server.port();
  }
  Config config;
  config.server = {.tls = true, .host = "127.0.0.1", .port = port, .path = ""};
  const absl::Status status = TransportRig(config).Get("/api?a=b").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("GET https://127.0.0.1:" + std::to_string(port) + "/api: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
}

TEST(TransportTest, AHostThatDoesNotResolveIsNamed) {
  Config config;
  // No name at all, so that no name server is asked.
  config.server = {.tls = true, .host = "no..host", .port = 443, .path = ""};
  const absl::Status status = TransportRig(config).Get("/").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no..host"));
}

TEST(TransportTest, WhatIsNotHttpIsUnavailable) {
  ScriptedApiServer server;
  server.Always("", Reply::Raw("SSH-2.0-OpenSSH\r\n\r\n").Cut());
  EXPECT_TRUE(absl::IsUnavailable(TransportRig(ConfigFor(server)).Get("/").status()));
}

TEST(TransportTest, ATargetThatIsNotPercentEncodedIsRefused) {
  const ScriptedApiServer server;
  EXPECT_TRUE(absl::IsInvalidArgument(TransportRig(ConfigFor(server)).Get("/a b").status()));
}

TEST(TransportTest, AnAnswerThatDoesNotComeIsGivenUpAtTheDeadline) {
  ScriptedApiServer server;
  server.Once("GET /head", Reply::Nothing());
  server.Once("GET /body", Reply::Stream().Text("{").Silence());
  TransportRig transport(ConfigFor(server));
  for (const char* target : {"/head", "/body"}) {
    const absl::Status status =
        transport->Send({.target = target, .timeout = kShort}, Cancellation()).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("within 200 ms"));
    EXPECT_TRUE(server.WaitForConnections(0));
  }
}

TEST(TransportTest, AnAnswerAboveTheLimitIsRefused) {
  ScriptedApiServer server;
  server.Once("", Reply::Json(200, std::string(1001, 'x')));
  server.Once("", Reply::Json(200, std::string(1000, 'x')));
  TransportRig transport(ConfigFor(server), {.max_body = 1000});
  EXPECT_TRUE(absl::IsResourceExhausted(transport.Get("/").status()));
  EXPECT_TRUE(transport.Get("/").ok());
}

TEST(TransportTest, AnAnswerThatIsCutOffIsUnavailable) {
  ScriptedApiServer server;
  server.Once("", Reply::Json(200, "{}", {{"Content-Length", "100"}}).Cut());
  server.Once("", Reply::Stream().Text("{").Cut());
  server.Once("", Reply::Stream().Text("{").Reset());
  TransportRig transport(ConfigFor(server));
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = transport.Get("/").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
}

TEST(TransportTest, WaitingEndsWhenCancelled) {
  ScriptedApiServer server;
  server.Always("", Reply::Nothing());
  TransportRig transport(ConfigFor(server));
  const Cancellation cancellation;
  std::thread canceller([&] {
    EXPECT_TRUE(server.WaitForRequests(1));
    cancellation.Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(transport->Send({.target = "/"}, cancellation).status()));
  canceller.join();
  EXPECT_TRUE(server.WaitForConnections(0));
  EXPECT_TRUE(absl::IsCancelled(transport->Send({.target = "/"}, cancellation).status()));
}

TEST(TransportTest, RequestsOfManyThreadsAreCancelledWithoutHarm) {
  ScriptedApiServer server;
  server.Always("GET /yes", Reply::Json(200, "{}"));
  server.Always("GET /no", Reply::Stream().Line("{}").Silence());
  TransportRig transport(ConfigFor(server));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(transport.Get("/yes").ok());
        const Cancellation cancellation;
        std::thread canceller([&, i] {
          std::this_thread::sleep_for(std::chrono::microseconds(i * (t + 1) * 400));
          cancellation.Cancel();
        });
        const auto stream = transport->Stream(
            {.target = "/no"}, kLong, [](std::string_view) { return true; }, cancellation);
        EXPECT_TRUE(absl::IsCancelled(stream.status())) << stream.status();
        canceller.join();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace adamant::kube
