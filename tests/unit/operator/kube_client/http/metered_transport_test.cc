#include "operator/kube_client/http/metered_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/scripted_transport.h"

namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

struct Told {
  std::string method;
  int code = 0;
  bool stream = false;
  Clock::Duration took{};

  bool operator==(const Told&) const = default;
};

class Observer final : public RequestObserver {
 public:
  void OnRequest(const HttpRequest& request, int code, bool stream, Clock::Duration took) override {
    told.push_back({request.method, code, stream, took});
  }
  std::vector<Told> told;
};

class MeteredTransportTest : public testing::Test {
 protected:
  ScriptedReply After(seconds time, ScriptedReply reply) {
    reply.on_arrival = [this, time] { clock_.Advance(time); };
    return reply;
  }

  FakeClock clock_;
  ScriptedTransport scripted_;
  Observer observer_;
  MeteredTransport transport_{scripted_, observer_, clock_};
};

TEST_F(MeteredTransportTest, TellsOfAnswersRefusalsAndBrokenConnections) {
  scripted_.Expect("GET", "/a", After(seconds(2), Answer(200)));
  scripted_.Expect("PUT", "/b", Answer(409));
  scripted_.Expect("POST", "/c", Broken());
  EXPECT_TRUE(transport_.Send({.method = "GET", .target = "/a"}, {}).ok());
  EXPECT_TRUE(transport_.Send({.method = "PUT", .target = "/b"}, {}).ok());
  EXPECT_FALSE(transport_.Send({.method = "POST", .target = "/c"}, {}).ok());
  EXPECT_THAT(observer_.told,
              ElementsAre(Told{"GET", 200, false, seconds(2)},
                          Told{"PUT", 409, false, seconds(0)},
                          Told{"POST", 0, false, seconds(0)}));
}

TEST_F(MeteredTransportTest, AStreamIsToldWhenItEnds) {
  scripted_.Expect("GET", "/w", After(seconds(300), Lines({"one", "two"})));
  std::vector<std::string> lines;
  EXPECT_TRUE(transport_
                  .Stream({.method = "GET", .target = "/w"},
                          seconds(1),
                          [&lines](std::string_view line) {
                            lines.emplace_back(line);
                            return true;
                          },
                          {})
                  .ok());
  EXPECT_THAT(lines, ElementsAre("one", "two"));
  EXPECT_THAT(observer_.told, ElementsAre(Told{"GET", 200, true, seconds(300)}));
}

}  // namespace
}  // namespace adamant::kube
