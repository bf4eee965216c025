#include "operator/kube_client/cache/reflector.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/scripted_transport.h"

namespace adamant::kube {
namespace {

// Writes down what it is told.
class Notes final : public ObjectSink {
 public:
  void BeginReplace() override { lines.emplace_back("begin"); }
  void EndReplace() override { lines.emplace_back("end"); }
  void Upsert(const Json& object) override { lines.push_back("+" + KeyOf(object).name); }
  void Remove(const Json& object) override { lines.push_back("-" + KeyOf(object).name); }

  std::vector<std::string> lines;
};

using Lined = std::vector<std::string>;

std::string Event(const std::string& type, const std::string& name, const std::string& version) {
  return Json{{"type", type},
              {"object", {{"metadata", {{"name", name}, {"resourceVersion", version}}}}}}
      .dump();
}

std::string InitialEnd(const std::string& version) {
  return Json{{"type", "BOOKMARK"},
              {"object",
               {{"metadata",
                 {{"resourceVersion", version},
                  {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}}}
      .dump();
}

constexpr char kTooOld[] =
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})";
constexpr char kNoProgress[] =
    R"({"type":"ERROR","object":{"kind":"Status","code":500,"message":"disabled"}})";
constexpr char kList[] =
    R"({"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"a"}}]})";
constexpr char kWatchListQuery[] = "/api/v1/pods?watch=true";

class ReflectorTest : public ::testing::Test {
 protected:
  ~ReflectorTest() override { EXPECT_EQ(transport_.left(), 0u); }

  // One step on this reply.
  Clock::Duration Step(ScriptedReply reply, const std::string& target = kWatchListQuery) {
    notes_.lines.clear();
    transport_.Expect("GET", target, std::move(reply));
    return reflector_.Step();
  }

  [[nodiscard]] bool Asked(const std::string& what) const {
    return transport_.requests().back().target.find(what) != std::string::npos;
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  ScriptedTransport transport_;
  Notes notes_;
  Reflector reflector_{
      Client(transport_, clock_, sleeper_, {.max_retries = 0}), kPods, {}, notes_, clock_, 1};
};

TEST_F(ReflectorTest, TheInitialEventsOfAWatchListAreOneCopy) {
  Step(Lines({Event("ADDED", "a", "3"),
              Event("ADDED", "b", "5"),
              Event("DELETED", "b", "6"),
              InitialEnd("6"),
              Event("ADDED", "c", "7")}));
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a", "+b", "-b", "end", "+c"}));
  EXPECT_TRUE(Asked("sendInitialEvents=true"));
  EXPECT_TRUE(Asked("resourceVersionMatch=NotOlderThan"));
  EXPECT_TRUE(Asked("allowWatchBookmarks=true"));
  Step(Lines({Event("MODIFIED", "c", "8"), Event("DELETED", "a", "9")}));
  EXPECT_TRUE(Asked("resourceVersion=7"));
  EXPECT_FALSE(Asked("sendInitialEvents"));
  EXPECT_EQ(notes_.lines, (Lined{"+c", "-a"}));
}

TEST_F(ReflectorTest, AWatchListThatBreaksIsBegunAgain) {
  Step(Lines({Event("ADDED", "a", "3")}, absl::UnavailableError("cut")));
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a"}));
  Step(Lines({Event("ADDED", "b", "4"), InitialEnd("4")}));
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+b", "end"}));
}

TEST_F(ReflectorTest, AStorageWithoutProgressIsListedAndThenWatched) {
  EXPECT_EQ(Step(Lines({kNoProgress})), Clock::Duration::zero());
  EXPECT_EQ(Step(Answer(200, kList), "/api/v1/pods?limit="), Clock::Duration::zero());
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a", "end"}));
  Step(Lines({Event("ADDED", "b", "11")}));
  EXPECT_TRUE(Asked("resourceVersion=10"));
  EXPECT_EQ(notes_.lines, (Lined{"+b"}));
}

TEST_F(ReflectorTest, AServerThatForbidsWatchListIsListed) {
  Step(Refusal(422, "Invalid", "sendInitialEvents is forbidden"));
  Step(Answer(200, kList), "/api/v1/pods?limit=");
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a", "end"}));
}

TEST_F(ReflectorTest, AServerThatDoesNotKnowWatchListIsListed) {
  // It takes the request for a watch from nowhere: the end of the initial events never comes.
  Step(Lines({Event("ADDED", "a", "3")}, absl::DeadlineExceededError("silent")));
  Step(Answer(200, kList), "/api/v1/pods?limit=");
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a", "end"}));
}

TEST_F(ReflectorTest, GoneMeansANewCopyAsAStatusAndAsAnEvent) {
  for (const ScriptedReply& gone : {Refusal(410, "Expired"), Lines({kTooOld})}) {
    Step(Lines({InitialEnd("4")}));
    EXPECT_GT(Step(gone), Clock::Duration::zero());
    Step(Lines({Event("ADDED", "a", "20"), InitialEnd("20")}, absl::OutOfRangeError("again")));
    EXPECT_EQ(notes_.lines, (Lined{"begin", "+a", "end"}));
  }
}

TEST_F(ReflectorTest, GarbageMeansANewCopy) {
  Step(Lines({InitialEnd("4")}));
  EXPECT_GT(Step(Lines({Event("ADDED", "a", "5"), "HTTP/1.1 502 Bad Gateway"})),
            Clock::Duration::zero());
  EXPECT_EQ(notes_.lines, (Lined{"+a"}));
  Step(Lines({InitialEnd("6")}));
  EXPECT_TRUE(Asked("sendInitialEvents=true"));
}

TEST_F(ReflectorTest, ABookmarkIsWhereAWatchIsResumed) {
  Step(Lines({InitialEnd("4")}));
  Step(Lines({R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"90"}}})"},
             absl::UnavailableError("cut")));
  EXPECT_TRUE(notes_.lines.empty());
  Step(Lines({}));
  EXPECT_TRUE(Asked("resourceVersion=90"));
}

TEST_F(ReflectorTest, SilenceIsEndedWithinHalfAMinuteAndResumed) {
  Step(Lines({InitialEnd("4")}));
  for (int i = 0; i < 2; ++i) {
    ScriptedReply silence = Lines({}, absl::DeadlineExceededError("silent"));
    silence.on_arrival = [this] { clock_.Advance(WatchPlan::kIdle); };
    EXPECT_EQ(Step(silence), Clock::Duration::zero());
  }
  EXPECT_TRUE(Asked("resourceVersion=4"));
  EXPECT_TRUE(Asked("timeoutSeconds=20"));
}

TEST_F(ReflectorTest, AStorageThatWasSetBackMeansANewCopy) {
  Step(Lines({InitialEnd("400")}));
  Step(Lines({Event("ADDED", "ghost", "300"), Event("ADDED", "x", "301")}));
  EXPECT_TRUE(notes_.lines.empty());
  Step(Lines({InitialEnd("301")}));
  EXPECT_TRUE(Asked("sendInitialEvents=true"));
}

TEST_F(ReflectorTest, AListWithoutAVersionIsNoCopy) {
  Step(Lines({kNoProgress}));
  EXPECT_GT(Step(Answer(200, R"({"items":[]})"), "/api/v1/pods?limit="), Clock::Duration::zero());
  EXPECT_EQ(notes_.lines, (Lined{"begin"}));
}

TEST_F(ReflectorTest, APartOfAListIsNoCopy) {
  Step(Lines({kNoProgress}));
  transport_.Expect("GET",
                    "/api/v1/pods?limit=",
                    Answer(200,
                           R"({"metadata":{"resourceVersion":"10","continue":"c"},
                               "items":[{"metadata":{"name":"a"}}]})"));
  EXPECT_GT(Step(Broken(), ""), Clock::Duration::zero());
  EXPECT_EQ(notes_.lines, (Lined{"begin", "+a"}));
}

}  // namespace
}  // namespace adamant::kube
