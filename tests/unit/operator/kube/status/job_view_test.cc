#include "operator/kube/status/job_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/api/custom_resources.h"
#include "proto/adamant/v1/resources.pb.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

namespace adamant::kube {
namespace {

using Json = nlohmann::json;

TEST(JobViewTest, AValidJobIsReadWithItsIdentity) {
  const auto view = ParseJobObject(JobObject());
  EXPECT_EQ(view->key, kJob.key);
  EXPECT_EQ(view->uid, kJob.uid);
  EXPECT_EQ(view->generation, 3);
  EXPECT_FALSE(view->deleting);
  EXPECT_NE(view->job, nullptr);
  EXPECT_EQ(view->problems, "");
  EXPECT_FALSE(view->status->has_phase());
}

TEST(JobViewTest, ARequestForACheckpointIsReadAndCut) {
  Json object = JobObject();
  EXPECT_EQ(ParseJobObject(object)->checkpoint_request, "");
  object["metadata"]["annotations"] = {{kCheckpointAnnotation, "2026-11-20T10:00:00Z"}};
  EXPECT_EQ(ParseJobObject(object)->checkpoint_request, "2026-11-20T10:00:00Z");
  object["metadata"]["annotations"] = {{kCheckpointAnnotation, std::string(5000, 'x')}};
  EXPECT_EQ(ParseJobObject(object)->checkpoint_request, std::string(63, 'x'));
}

TEST(JobViewTest, AJobThatIsBeingDeletedIsKnown) {
  Json object = JobObject();
  object["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z";
  EXPECT_TRUE(ParseJobObject(object)->deleting);
}

TEST(JobViewTest, ProblemsAreThoseThatValidateTells) {
  const Json object = JobObject({{"optimiser", {{"kind", "Adagrad"}, {"location", "Worker"}}},
                                 {"distribution", {{"workers", 0}}},
                                 {"runPolicy", {{"epoch", 2}}}});
  Json manifest = object;
  manifest["metadata"] = {{"name", "mnist"}};
  const job::ParseResult validated = job::ParseJob(manifest.dump(1), "job.yaml");
  ASSERT_GE(validated.problems.size(), 3u);
  const auto view = ParseJobObject(object);
  EXPECT_EQ(view->job, nullptr);
  EXPECT_EQ(view->key, kJob.key);
  for (const job::Diagnostic& problem : validated.problems) {
    EXPECT_NE(view->problems.find(problem.field_path + ": " + problem.message), std::string::npos)
        << problem.field_path << " is not in " << view->problems;
  }
  EXPECT_EQ(
      static_cast<std::size_t>(std::count(view->problems.begin(), view->problems.end(), '\n')) + 1,
      validated.problems.size());
}

TEST(JobViewTest, TheStatusIsReadBack) {
  Json object = JobObject();
  object["status"] = {{"phase", "Running"}, {"epoch", 4}, {"observedGeneration", 2}};
  const auto view = ParseJobObject(object);
  EXPECT_EQ(view->status->phase(), v1::TrainingJobStatus::PHASE_RUNNING);
  EXPECT_EQ(view->status->epoch(), 4);
  EXPECT_EQ(view->status->observed_generation(), 2);
}

TEST(JobViewTest, ANumberOfWorkersThatMakesAJobInvalidLeavesTheOneInForce) {
  Json object = JobObject({{"distribution", {{"workers", 900}}}});  // more batches than examples
  EXPECT_EQ(ParseJobObject(object)->job, nullptr) << "it never ran";
  object["status"] = {{"roles", {{"worker", {{"desired", 3}}}}}};
  const auto view = ParseJobObject(object);
  ASSERT_NE(view->job, nullptr);
  EXPECT_EQ(view->job->spec().distribution().workers(), 3);
  EXPECT_NE(view->problems.find("spec.distribution.workers: 900 workers"), std::string::npos)
      << view->problems;
}

TEST(JobViewTest, WhatIsWrongBesideTheWorkersStaysWrong) {
  Json object = JobObject({{"optimiser", {{"kind", "Adagrad"}, {"location", "Worker"}}}});
  object["status"] = {{"roles", {{"worker", {{"desired", 3}}}}}};
  EXPECT_EQ(ParseJobObject(object)->job, nullptr);
}

TEST(JobViewTest, AStatusThatIsNotOursDoesNotHinderTheJob) {
  Json object = JobObject();
  for (const Json& status : {Json(3), Json({{"phase", "Dancing"}, {"epoch", "x"}})}) {
    object["status"] = status;
    const auto view = ParseJobObject(object);
    EXPECT_NE(view->job, nullptr);
    EXPECT_FALSE(view->status->has_phase());
  }
}

TEST(JobViewTest, OldDefaultsHaveOneCopyUnlessTheSpecNamesMore) {
  const auto copies = [](const Json& servers) {
    const Json spec = {{"distribution", {{"parameterServers", servers}}}};
    const auto view = WithOldDefaults(ParseJobObject(JobObject(spec)));
    const auto& read = view->job->spec().distribution().parameter_servers();
    return std::pair(read.copies(), read.min_in_sync());
  };
  EXPECT_EQ(copies(Json::object()), std::pair(1, 1));
  EXPECT_EQ(copies({{"count", 2}}), std::pair(1, 1));
  EXPECT_EQ(copies({{"copies", 3}}), std::pair(3, 2));
  EXPECT_EQ(ParseJobObject(JobObject())->job->spec().distribution().parameter_servers().copies(),
            3);
}

}  // namespace
}  // namespace adamant::kube
