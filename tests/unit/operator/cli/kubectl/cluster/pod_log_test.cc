#include "operator/cli/kubectl/cluster/pod_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/kube/scripted_transport.h"
#include "tests/unit/operator/cli/kubectl/job_rig.h"

namespace adamant::kubectl {
namespace {

using testing::ElementsAre;

constexpr char kLog[] = "/api/v1/namespaces/training/pods/p/log?container=adamant";
constexpr char kPod[] = "/api/v1/namespaces/training/pods/p";
constexpr char kFirst[] = "2026-01-31T12:00:00.000000001Z a";
constexpr char kSecond[] = "2026-01-31T12:00:00.000000002Z b c";

class PodLogTest : public testing::Test {
 protected:
  PodLogTest() { session_.client = kube::Client(transport_, rig_.clock, rig_.sleeper); }

  LineReader Collect() {
    return [this](std::string_view line) {
      lines_.emplace_back(line);
      return true;
    };
  }
  static kube::ScriptedReply Pod(const Json& pod) { return kube::Answer(200, pod.dump()); }

  Rig rig_;
  kube::ScriptedTransport transport_;
  Session session_ = rig_.NewSession();
  const kube::ObjectKey key_{"training", "p"};
  std::vector<std::string> lines_;
};

TEST_F(PodLogTest, ReadsTheLastLines) {
  transport_.Expect("GET", std::string(kLog) + "&tailLines=2", kube::Lines({"a", "b"}));
  EXPECT_TRUE(ReadLog(session_, key_, {.tail = 2}, Collect()).ok());
  EXPECT_THAT(lines_, ElementsAre("a", "b"));
}

TEST_F(PodLogTest, ABrokenConnectionLosesAndRepeatsNothing) {
  const std::string follow = std::string(kLog) + "&follow=true&timestamps=true";
  transport_.Expect(
      "GET", follow, kube::Lines({kFirst, kSecond}, absl::UnavailableError("connection reset")));
  transport_.Expect("GET", kPod, Pod(ThePod("worker", 0)));
  transport_.Expect("GET",
                    follow + "&sinceTime=2026-01-31T12%3A00%3A00Z",
                    kube::Lines({kFirst, kSecond, "2026-01-31T12:00:00.000000003Z "}));
  transport_.Expect("GET", kPod, Pod(Ended(ThePod("worker", 0), 0)));
  EXPECT_TRUE(FollowLog(session_, key_, {}, Collect()).ok());
  EXPECT_THAT(lines_, ElementsAre("a", "b c", ""));
  EXPECT_EQ(transport_.left(), 0u);
}

TEST_F(PodLogTest, APodThatIsGoneEndsIt) {
  transport_.Expect("GET", kLog, kube::Refusal(404, "NotFound"));
  EXPECT_TRUE(absl::IsNotFound(FollowLog(session_, key_, {}, Collect())));
}

}  // namespace
}  // namespace adamant::kubectl
