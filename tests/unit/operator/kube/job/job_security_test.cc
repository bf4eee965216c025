#include "operator/kube/job/job_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proto/adamant/v1/resources.pb.h"
#include "tests/unit/operator/kube/job/job_reconciler_rig.h"

namespace adamant::kube {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A job keeps the way in which its processes talk, whatever the operators' flags say later.
class JobSecurityTest : public JobReconcilerRig {
 protected:
  void UseTls() {
    context_.pods.security = PodSecurity{.control_service = "operators:7072",
                                         .certificates = "operators:7071",
                                         .trust_domain = "adamant.local",
                                         .roots = [this] { return roots_; }};
  }
  void DoWithoutTls() { context_.pods.security.reset(); }

  [[nodiscard]] Json Status() const {
    return client_.Get(kTrainingJobs, kJob.key).value().value("status", Json::object());
  }
  [[nodiscard]] std::string Mode() const { return StringAt(Status(), {"security", "mode"}); }

  // "STATUS, REASON" of condition Secured; "" where there is none.
  [[nodiscard]] std::string Secured() const {
    std::string found;
    for (const Json& condition : Status().value("conditions", Json::array())) {
      if (condition["type"] == "Secured") {
        EXPECT_EQ(found, "") << "it is there twice";
        found = StringAt(condition, {"status"}) + ", " + StringAt(condition, {"reason"});
      }
    }
    return found;
  }

  [[nodiscard]] std::vector<std::string> ArgumentsOfPods() const {
    std::vector<std::string> all;
    for (const Json& pod : List(kPods)) {
      for (const Json& argument : pod["spec"]["containers"][0]["args"]) {
        all.push_back(argument);
      }
    }
    return all;
  }

  // The status is that which an operator of before TLS has written.
  void ForgetMode() {
    Json job = client_.Get(kTrainingJobs, kJob.key).value();
    job["status"].erase("security");
    ASSERT_TRUE(client_.Update(kTrainingJobs, job, "status").ok());
  }

  std::string roots_ = "the roots";
};

TEST_F(JobSecurityTest, AJobBeginsAsOperatorsDo) {
  UseTls();
  Lead(Json::object());
  Work();
  EXPECT_EQ(Mode(), "TLS");
  EXPECT_EQ(Secured(), "True, TLS");
  EXPECT_EQ(control_.security(), control::StreamSecurity::kTls);
  EXPECT_THAT(ArgumentsOfPods(), Contains("--controller=operators:7072"));
  EXPECT_THAT(ArgumentsOfPods(), Contains("--certificates=operators:7071"));
}

TEST_F(JobSecurityTest, WithoutTlsItSaysSo) {
  Lead(Json::object());
  Work();
  EXPECT_EQ(Mode(), "Plain");
  EXPECT_EQ(Secured(), "False, TLSDisabled");
  EXPECT_EQ(control_.security(), control::StreamSecurity::kPlain);
  EXPECT_THAT(ArgumentsOfPods(), Not(Contains(HasSubstr("--certificates="))));
}

TEST_F(JobSecurityTest, AJobThatBeganWithoutStaysWithout) {
  Lead(Json::object());
  Work();
  UseTls();
  Lead(Json::object());
  Work();
  EXPECT_EQ(Mode(), "Plain");
  EXPECT_EQ(Secured(), "False, TLSDisabled");
  EXPECT_EQ(control_.security(), control::StreamSecurity::kPlain);
}

TEST_F(JobSecurityTest, AJobFromBeforeTlsStaysWithout) {
  Lead(Json::object());
  Work();
  ForgetMode();
  UseTls();
  Lead(Json::object());
  Work();
  EXPECT_EQ(Mode(), "Plain");
  EXPECT_EQ(control_.security(), control::StreamSecurity::kPlain);
}

TEST_F(JobSecurityTest, AStatusFromBeforeTheDecisionDoesNotUndoIt) {
  UseTls();
  Lead(Json::object());
  Work();
  auto old = std::make_shared<JobView>(*view_);
  old->status = std::make_shared<v1::TrainingJobStatus>();
  view_ = old;
  reconciler_ = nullptr;
  reconciler_ = std::make_unique<JobReconciler>(context_, view_, [] {});
  Work();
  EXPECT_EQ(control_.security(), control::StreamSecurity::kTls);
  EXPECT_EQ(Mode(), "TLS");
}

TEST_F(JobSecurityTest, OperatorsWithoutTlsDoNotLeadAJobThatUsesIt) {
  UseTls();
  Lead(Json::object());
  Work();
  const std::vector<std::string> pods = Names(kPods);
  DoWithoutTls();
  Lead(Json::object());
  Work();
  WorkAfter(std::chrono::minutes(2));
  EXPECT_EQ(Mode(), "TLS");
  EXPECT_EQ(Names(kPods), pods);
  EXPECT_THAT(StringAt(Status(), {"message"}), HasSubstr("--tls=on"));
}

TEST_F(JobSecurityTest, NothingBeginsBeforeThereIsAnAuthority) {
  UseTls();
  roots_.clear();
  Lead(Json::object());
  Work();
  EXPECT_THAT(Names(kPods), IsEmpty());
  EXPECT_EQ(Mode(), "");
  roots_ = "the roots";
  Work();
  EXPECT_EQ(Mode(), "TLS");
  EXPECT_THAT(Names(kPods), Not(IsEmpty()));
}

TEST_F(JobSecurityTest, AnApiThatDoesNotKnowTheFieldIsNoticed) {
  UseTls();
  server_.SetAnswers([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "PATCH" && request.target.find("/status") != std::string::npos) {
      return HttpResponse{.status = 200, .body = R"({"metadata": {"resourceVersion": "1"}})"};
    }
    return std::nullopt;
  });
  Lead(Json::object());
  Work();
  EXPECT_THAT(Names(kPods), IsEmpty());
}

}  // namespace
}  // namespace adamant::kube
