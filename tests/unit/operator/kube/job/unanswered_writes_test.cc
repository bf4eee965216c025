// Requests that somebody holds up: an admission webhook that hangs, of an API that answers all
// else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "tests/unit/operator/kube/job/refused_job_rig.h"

namespace adamant::kube {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class UnansweredJobTest : public RefusedJobTest {
 protected:
  /// Requests that `hangs` picks are without an answer, which takes the time that is waited for it.
  void Hang(std::function<bool(const HttpRequest& request)> hangs) {
    server_.SetFaults([this, hangs = std::move(hangs)](const HttpRequest& request) {
      if (!hangs(request)) {
        return MemoryApiServer::Fault::kNone;
      }
      clock_.Advance(request.timeout);
      return MemoryApiServer::Fault::kRefuse;
    });
  }

  static bool IsPost(const HttpRequest& request, std::string_view target, std::string_view body) {
    return request.method == "POST" && request.target.find(target) != std::string::npos &&
           request.target.find("dryRun") == std::string::npos &&
           request.body.find(body) != std::string::npos;
  }

  void ExpectTold(const std::string& what) {
    const std::string text = "cannot " + what + ": no answer from the API server since ";
    EXPECT_THAT(StringAt(Status(), {"message"}), HasSubstr(text));
    EXPECT_THAT(WriteFailure(), HasSubstr(text));
    EXPECT_THAT(Warnings(), Contains(AllOf(HasSubstr("Unanswered"), HasSubstr(text))));
  }

  void ExpectPutRight() {
    server_.SetFaults(nullptr);
    WorkForTenSeconds();
    EXPECT_EQ(WriteFailure(), "");
  }
};

TEST_F(UnansweredJobTest, APodThatHasNoAnswerIsToldAndTheOthersAreMade) {
  LeadTwoServers();
  Hang([](const HttpRequest& request) {
    return IsPost(request, "/pods", "data-server") || IsPost(request, "/pods", "worker-0");
  });
  WorkForTenSeconds();
  ExpectTold("create pod data-server-0");
  EXPECT_THAT(WriteFailure(), HasSubstr("cannot create pod worker-0"));
  EXPECT_THAT(Names(kPods), Contains("mnist-parameter-server-1-1"));
  ExpectPutRight();
}

TEST_F(UnansweredJobTest, ATrialOfThePodsThatHasNoAnswerIsTold) {
  LeadTwoServers();
  Hang([](const HttpRequest& request) {
    return request.target.find("dryRun") != std::string::npos;
  });
  WorkForTenSeconds();
  ExpectTold("check spec.pods.dataServer in a dry run");
  ExpectPutRight();
}

TEST_F(UnansweredJobTest, AStateThatIsNotStoredForWantOfAnAnswerIsTold) {
  LeadTwoServers();
  Hang([](const HttpRequest& request) { return IsPost(request, "/configmaps", ""); });
  WorkForTenSeconds();
  ExpectTold("update the job's state");
  ExpectPutRight();
}

TEST_F(UnansweredJobTest, AnApiThatWasAwayHasHungNothing) {
  LeadTwoServers();
  Work();
  ASSERT_TRUE(client_.Delete(kPods, {kJob.key.ns, "mnist-worker-0-1"}).ok());
  const JobObjects objects = Objects();
  Hang([](const HttpRequest& /*request*/) { return true; });
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(seconds(1));
    reconciler_->Work(view_, objects).IgnoreError();
  }
  server_.SetFaults(nullptr);
  WorkForTenSeconds();
  EXPECT_THAT(Warnings(), Each(Not(HasSubstr("Unanswered"))));
  EXPECT_THAT(Names(kPods), Contains("mnist-worker-0-2"));
}

}  // namespace
}  // namespace adamant::kube
