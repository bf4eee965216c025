#include "operator/kube_client/api/request_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/scripted_transport.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ApiRequest kGet{.method = "GET", .target = "/version"};

class RequestSenderTest : public ::testing::Test {
 protected:
  ~RequestSenderTest() override { EXPECT_EQ(transport_.left(), 0u); }

  [[nodiscard]] RequestSender NewSender(const ClientOptions& options = {}) {
    return {transport_, clock_, sleeper_, options};
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  ScriptedTransport transport_;
};

TEST_F(RequestSenderTest, NamesOnlyTheTypesThatThereAre) {
  const RequestSender sender = NewSender({.timeout = seconds(7)});
  transport_.Expect("GET", "/version", Answer(200));
  ASSERT_TRUE(sender.Send(kGet).ok());
  EXPECT_EQ(transport_.requests().back().headers, (Headers{{"accept", "application/json"}}));
  EXPECT_EQ(transport_.requests().back().timeout, seconds(7));
  transport_.Expect("POST", "/text", Answer(200));
  ASSERT_TRUE(
      sender
          .Send(
              {.method = "POST", .target = "/text", .body = "b", .content_type = "c", .accept = {}})
          .ok());
  EXPECT_EQ(transport_.requests().back().headers, (Headers{{"content-type", "c"}}));
}

TEST_F(RequestSenderTest, ASettingIsThatOfOneCopy) {
  const RequestSender sender = NewSender();
  RequestSender copy = sender;
  int calls = 0;
  copy.set_meanwhile([&calls] { ++calls; });
  copy.set_max_retries(0);
  transport_.Expect("GET", "/version", Broken());
  EXPECT_TRUE(absl::IsUnavailable(copy.Send(kGet).status()));
  transport_.requests().back().meanwhile();
  EXPECT_EQ(calls, 1);
  transport_.Expect("GET", "/version", Broken());
  transport_.Expect("GET", "/version", Answer(200));
  EXPECT_TRUE(sender.Send(kGet).ok());
  EXPECT_FALSE(transport_.requests().back().meanwhile);
}

TEST_F(RequestSenderTest, StreamsWaitForTheirTurnAndAreNotRepeated) {
  const RequestSender sender = NewSender({.rate = 10, .burst = 1});
  const auto read = [](std::string_view) { return true; };
  transport_.Expect("GET", "/version", Lines({"a"}));
  EXPECT_TRUE(sender.Stream(kGet, seconds(1), read).ok());
  transport_.Expect("GET", "/version", Broken());
  EXPECT_TRUE(absl::IsUnavailable(sender.Stream(kGet, seconds(1), read).status()));
  EXPECT_EQ(sleeper_.sleeps(), std::vector<Clock::Duration>{milliseconds(100)});
}

TEST_F(RequestSenderTest, WaitsAsAskedButNotForEver) {
  const RequestSender sender = NewSender({.max_retry_after = seconds(15)});
  for (const char* time : {"2", "3600", "soon"}) {
    sender.WaitAsAsked({.status = 429, .headers = {{"retry-after", time}}});
  }
  sender.WaitAsAsked({.status = 200, .headers = {{"retry-after", "2"}}});
  EXPECT_EQ(sleeper_.sleeps(), (std::vector<Clock::Duration>{seconds(2), seconds(15)}));
}

TEST_F(RequestSenderTest, CancellingEndsTheWaitForATurn) {
  RequestSender sender = NewSender({.rate = 1, .burst = 1});
  const Cancellation cancellation;
  sender.set_cancellation(cancellation);
  transport_.Expect("GET", "/version", Answer(200));
  ASSERT_TRUE(sender.Send(kGet).ok());
  cancellation.Cancel();
  EXPECT_TRUE(absl::IsCancelled(sender.Send(kGet).status()));
}

}  // namespace
}  // namespace adamant::kube
