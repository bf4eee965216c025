#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube_client/base/transport.h"
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

/// Streams "/watch" and keeps the lines.
struct Watch {
  std::vector<std::string> lines;
  absl::StatusOr<HttpResponse> response;

  Watch(TransportRig& transport, milliseconds idle, const Cancellation& cancellation = {})
      : response(transport->Stream(
            {.target = "/watch"},
            idle,
            [this](std::string_view line) {
              lines.emplace_back(line);
              return true;
            },
            cancellation)) {}
};

TEST(TransportStreamTest, LinesAreDeliveredAsTheyArrive) {
  ScriptedApiServer server;
  server.Once("", Reply::Stream().Line("one").WaitFor("one").Line("two").WaitFor("two"));
  TransportRig transport(ConfigFor(server));
  std::vector<std::string> lines;
  const auto response = transport->Stream(
      {.target = "/watch"},
      kLong,
      [&](std::string_view line) {
        lines.emplace_back(line);
        server.Open(lines.back());  // the server goes on only when this line has been delivered
        return true;
      },
      Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_THAT(lines, ElementsAre("one", "two"));
}

TEST(TransportStreamTest, LinesMayBeCutIntoPiecesAnyhow) {
  ScriptedApiServer server;
  server.Once(
      "", Reply::Stream().Text("on").Text("e\ntwo\nth").Text("r").Text("ee\r").Text("\n\n\nfo"));
  TransportRig transport(ConfigFor(server));
  const Watch watch(transport, kLong);
  ASSERT_TRUE(watch.response.ok()) << watch.response.status();
  EXPECT_THAT(watch.lines, ElementsAre("one", "two", "three"));
}

TEST(TransportStreamTest, AStreamThatIsCutInALineIsUnavailableAndTheRestIsNotDelivered) {
  ScriptedApiServer server;
  server.Once("", Reply::Stream().Line("one").Text("tw").Cut());
  TransportRig transport(ConfigFor(server));
  const Watch watch(transport, kLong);
  EXPECT_TRUE(absl::IsUnavailable(watch.response.status())) << watch.response.status();
  EXPECT_THAT(watch.lines, ElementsAre("one"));
}

TEST(TransportStreamTest, AHalfOpenStreamEndsWhenNothingHasArrivedForTheIdleTime) {
  ScriptedApiServer server;
  server.Once("", Reply::Stream().Line("one").Silence());
  TransportRig transport(ConfigFor(server));
  const Watch watch(transport, kShort);
  EXPECT_TRUE(absl::IsDeadlineExceeded(watch.response.status())) << watch.response.status();
  EXPECT_THAT(std::string(watch.response.status().message()), HasSubstr("nothing has arrived"));
  EXPECT_THAT(watch.lines, ElementsAre("one"));
  EXPECT_TRUE(server.WaitForConnections(0));
}

TEST(TransportStreamTest, AQuietStreamThatSaysSomethingNowAndThenGoesOn) {
  ScriptedApiServer server;
  Reply reply = Reply::Stream();
  for (int i = 0; i < 10; ++i) {
    reply = std::move(reply).Wait(kShort / 4).Line("bookmark");
  }
  server.Once("", reply);
  TransportRig transport(ConfigFor(server));
  const Watch watch(transport, kShort);  // half of the time that it takes
  ASSERT_TRUE(watch.response.ok()) << watch.response.status();
  EXPECT_EQ(watch.lines.size(), 10U);
}

TEST(TransportStreamTest, AnErrorHasItsBody) {
  ScriptedApiServer server;
  server.Once("", Reply::Json(410, R"({"reason":"Expired"})"));
  TransportRig transport(ConfigFor(server));
  const Watch watch(transport, kLong);
  ASSERT_TRUE(watch.response.ok()) << watch.response.status();
  EXPECT_EQ(watch.response->status, 410);
  EXPECT_EQ(watch.response->body, R"({"reason":"Expired"})");
  EXPECT_THAT(watch.lines, ElementsAre());
}

TEST(TransportStreamTest, TheReaderEndsTheStream) {
  ScriptedApiServer server;
  server.Once("", Reply::Stream().Text("one\ntwo\n").Silence());
  TransportRig transport(ConfigFor(server));
  int lines = 0;
  const auto response = transport->Stream(
      {.target = "/watch"}, kLong, [&](std::string_view) { return ++lines < 1; }, Cancellation());
  EXPECT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(lines, 1);
  EXPECT_TRUE(server.WaitForConnections(0));
}

TEST(TransportStreamTest, AStreamEndsWhenCancelledFromAnywhere) {
  ScriptedApiServer server;
  server.Always("", Reply::Stream().Line("one").Silence());
  TransportRig transport(ConfigFor(server));
  for (const bool from_within : {true, false}) {
    const Cancellation cancellation;
    std::thread canceller;
    const auto response = transport->Stream(
        {.target = "/watch"},
        kLong,
        [&](std::string_view) {
          if (from_within) {
            cancellation.Cancel();
          } else {
            canceller = std::thread([&] { cancellation.Cancel(); });
          }
          return true;
        },
        cancellation);
    EXPECT_TRUE(absl::IsCancelled(response.status())) << response.status();
    if (canceller.joinable()) {
      canceller.join();
    }
    EXPECT_TRUE(server.WaitForConnections(0));
  }
}

TEST(TransportStreamTest, ALineAboveTheLimitEndsTheStream) {
  ScriptedApiServer server;
  server.Once("", Reply::Stream().Line(std::string(1000, 'x')).Text(std::string(1001, 'y')));
  TransportRig transport(ConfigFor(server), {.max_line = 1000});
  const Watch watch(transport, kLong);
  EXPECT_TRUE(absl::IsResourceExhausted(watch.response.status())) << watch.response.status();
  EXPECT_EQ(watch.lines.size(), 1U);
}

std::size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(getpagesize());
}

TEST(TransportStreamTest, WhatASlowReaderHasNotReadIsNotStored) {
  constexpr std::size_t kLineBytes = std::size_t{1} << 20;
  constexpr int kLines = 64;
  ScriptedApiServer server;
  Reply reply = Reply::Stream().Line("start");
  for (int i = 0; i < kLines; ++i) {
    reply = std::move(reply).Line(std::string(kLineBytes, 'x'));
  }
  server.Once("", reply);
  TransportRig transport(ConfigFor(server));
  std::size_t before = 0;
  std::size_t most = 0;
  int lines = 0;
  const auto response = transport->Stream(
      {.target = "/watch"},
      kLong,
      [&](std::string_view) {
        if (++lines == 2) {
          before = ResidentBytes();
          std::this_thread::sleep_for(kShort);  // time enough for all of it to arrive, if it did
          most = ResidentBytes();
        }
        return true;
      },
      Cancellation());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(lines, kLines + 1);
  EXPECT_LT(most - before, 8 * kLineBytes);
}

}  // namespace
}  // namespace adamant::kube
