#include "operator/kube/status/status_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube_client/api/client.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/resources.pb.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using Status = v1::TrainingJobStatus;
using Fault = MemoryApiServer::Fault;

class StatusWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    const Json job = client_.Create(kTrainingJobs, JobObject()).value();
    job_ = {.key = kJob.key, .uid = UidOf(job)};
  }

  StatusWriter NewWriter() {
    StatusWriter writer(client_, job_);
    writer.StartFrom(ResourceVersionOf(Job()));
    return writer;
  }

  static Status InEpoch(std::int64_t epoch, std::int64_t examples = 0) {
    Status status;
    status.set_epoch(epoch);
    status.set_examples(examples);
    return status;
  }

  static absl::Status Leads() { return absl::OkStatus(); }
  static absl::Status WasReplaced() { return absl::AbortedError("another controller leads"); }

  Json Job() { return client_.Get(kTrainingJobs, kJob.key).value_or(Json()); }
  std::int64_t Epoch() { return IntAt(Job(), {"status", "epoch"}); }

  void Annotate(const std::string& value) {
    const Json patch = {{"metadata", {{"annotations", {{"note", value}}}}}};
    EXPECT_TRUE(client_.Patch(kTrainingJobs, kJob.key, PatchType::kMerge, patch).ok());
  }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  const Client client_ =
      Client(server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}).WithoutRetries();
  JobIdentity job_;
};

TEST_F(StatusWriterTest, WhatSomebodyDecidesByIsDueAtOnceTheRestNowAndThen) {
  StatusWriter writer = NewWriter();
  EXPECT_TRUE(writer.IsDue(InEpoch(1), clock_.Now()));
  ASSERT_TRUE(writer.Write(InEpoch(1), Leads).ok());
  EXPECT_FALSE(writer.IsDue(InEpoch(1), clock_.Now()));
  EXPECT_FALSE(writer.IsDue(InEpoch(1, 100), clock_.Now()));
  EXPECT_TRUE(writer.IsDue(InEpoch(2, 100), clock_.Now()));
  clock_.Advance(std::chrono::seconds(10));
  EXPECT_TRUE(writer.IsDue(InEpoch(1, 100), clock_.Now()));
  EXPECT_EQ(writer.next_progress(), clock_.Now() + std::chrono::seconds(10));
}

TEST_F(StatusWriterTest, AJobOfWhichNothingIsNewIsReportedEveryMinute) {
  StatusWriter writer = NewWriter();
  Status status = InEpoch(1);
  status.set_last_report_time("2026-01-31T12:00:00Z");
  ASSERT_TRUE(writer.IsDue(status, clock_.Now()));
  ASSERT_TRUE(writer.Write(status, Leads).ok());
  int writes = 0;
  for (int i = 1; i <= 180; ++i) {
    clock_.Advance(std::chrono::seconds(1));
    status.set_last_report_time("2026-01-31T12:00:00Z and " + std::to_string(i) + " s");
    status.mutable_active()->set_seconds(i);
    writes += writer.IsDue(status, clock_.Now()) ? 1 : 0;
  }
  EXPECT_EQ(writes, 3);
  status.clear_last_report_time();
  clock_.Advance(std::chrono::minutes(5));
  EXPECT_FALSE(writer.IsDue(status, clock_.Now())) << "one that has ended is left alone";
}

TEST_F(StatusWriterTest, AWriteTakesOneRequest) {
  StatusWriter writer = NewWriter();
  const std::uint64_t before = server_.requests();
  for (int epoch = 1; epoch <= 5; ++epoch) {
    ASSERT_TRUE(writer.Write(InEpoch(epoch), WasReplaced).ok());
  }
  EXPECT_EQ(server_.requests() - before, 5U);
  EXPECT_EQ(Epoch(), 5);
}

TEST_F(StatusWriterTest, AReplacedControllerDoesNotWriteOverItsSuccessorsStatus) {
  StatusWriter old = NewWriter();
  ASSERT_TRUE(old.Write(InEpoch(1), Leads).ok());
  StatusWriter next = NewWriter();
  ASSERT_TRUE(next.Write(InEpoch(2), Leads).ok());
  EXPECT_TRUE(absl::IsAborted(old.Write(InEpoch(1, 100), WasReplaced)));
  EXPECT_EQ(Epoch(), 2);
}

// It was sent before, and is carried out late.
TEST_F(StatusWriterTest, AWriteUnderWayIsRefusedOnceTheSuccessorHasWritten) {
  const std::string seen = ResourceVersionOf(Job());
  StatusWriter next = NewWriter();
  ASSERT_TRUE(next.Write(InEpoch(2), Leads).ok());
  EXPECT_TRUE(absl::IsAborted(ApplyStatus(client_, job_, InEpoch(1), seen).status()));
  EXPECT_EQ(Epoch(), 2);
}

TEST_F(StatusWriterTest, ASuccessorWritesOverAWriteThatWasUnderWay) {
  StatusWriter next = NewWriter();
  ASSERT_TRUE(ApplyStatus(client_, job_, InEpoch(1), "").ok());
  ASSERT_TRUE(next.Write(InEpoch(2), Leads).ok());
  EXPECT_EQ(Epoch(), 2);
}

TEST_F(StatusWriterTest, AUsersChangeStaysAndTheStatusIsWritten) {
  StatusWriter writer = NewWriter();
  ASSERT_TRUE(writer.Write(InEpoch(1), Leads).ok());
  Annotate("of a user");
  ASSERT_TRUE(writer.Write(InEpoch(2), Leads).ok());
  EXPECT_EQ(Epoch(), 2);
  EXPECT_EQ(StringAt(Job(), {"metadata", "annotations", "note"}), "of a user");
}

TEST_F(StatusWriterTest, AJobThatKeepsChangingIsTriedAgainLater) {
  StatusWriter writer = NewWriter();
  Annotate("one");
  const std::uint64_t before = server_.requests();
  const auto change_again = [this] {
    Annotate("two");
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(writer.Write(InEpoch(1), change_again)));
  EXPECT_EQ(server_.requests() - before, 4U);  // two attempts, a look, and the change
  EXPECT_TRUE(writer.Write(InEpoch(1), Leads).ok());
}

TEST_F(StatusWriterTest, AWriteWhoseAnswerIsLostIsWrittenAgain) {
  StatusWriter writer = NewWriter();
  server_.SetFaults([](const HttpRequest&) { return Fault::kLoseAnswer; });
  EXPECT_TRUE(absl::IsUnavailable(writer.Write(InEpoch(1), Leads)));
  server_.SetFaults(nullptr);
  EXPECT_TRUE(writer.IsDue(InEpoch(1), clock_.Now()));
  ASSERT_TRUE(writer.Write(InEpoch(2), Leads).ok());
  EXPECT_EQ(Epoch(), 2);
}

TEST_F(StatusWriterTest, AJobThatIsGoneNeedsNoStatus) {
  StatusWriter writer = NewWriter();
  ASSERT_TRUE(client_.Delete(kTrainingJobs, kJob.key).ok());
  EXPECT_TRUE(writer.Write(InEpoch(1), Leads).ok());
}

TEST_F(StatusWriterTest, AnotherJobOfTheNameKeepsItsStatus) {
  StatusWriter writer = NewWriter();
  ASSERT_TRUE(client_.Delete(kTrainingJobs, kJob.key).ok());
  ASSERT_TRUE(client_.Create(kTrainingJobs, JobObject()).ok());
  EXPECT_FALSE(writer.Write(InEpoch(1), Leads).ok());
  EXPECT_EQ(Epoch(), 0);
}

}  // namespace
}  // namespace adamant::kube
