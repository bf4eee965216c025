#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/schema/message_json.h"
#include "operator/kube/status/job_status.h"
#include "operator/kube/status/restart_counter.h"
#include "proto/adamant/v1/resources.pb.h"
#include "tests/simulation/operator/cluster.h"
#include "tests/unit/operator/kube/job/job_fixture.h"

// Whatever the schema of a job's status promises, an operator writes.
namespace adamant::kube {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using orchestration::Cluster;
using orchestration::kJobKey;
using orchestration::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

using Paths = std::set<std::string>;

void AddPromised(const Descriptor& type, const std::string& prefix, Paths& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.json_name();
    if (field.message_type() != nullptr &&
        field.message_type()->full_name() != "google.protobuf.Duration") {
      AddPromised(*field.message_type(), path + ".", paths);
    } else {
      paths.insert(path);
    }
  }
}

std::string PathOf(std::string of, const std::string& name) {
  of += of.empty() ? "" : ".";
  of += name;
  return of;
}

void AddWritten(const Json& value, const std::string& path, Paths& paths) {
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      AddWritten(inner, PathOf(path, name), paths);
    }
  } else if (value.is_array()) {
    for (const Json& element : value) {
      AddWritten(element, path, paths);
    }
  } else {
    paths.insert(path);
  }
}

// What a job writes over which nothing but one loss comes.
void AddOfAWholeJob(Paths& paths) {
  Cluster cluster(1);
  cluster.user.Apply();
  const auto collect = [&](const std::string& phase) {
    const Json job = cluster.world.admin.Get(kTrainingJobs, kJobKey).value_or(Json());
    AddWritten(job.value("status", Json::object()), "", paths);
    return cluster.user.PhaseNow() == phase;
  };
  cluster.RunUntil([&] { return collect("Running"); }, std::chrono::minutes(2), "it does not run");
  const Json request = {{"metadata", {{"annotations", {{kCheckpointAnnotation, "now"}}}}}};
  ASSERT_TRUE(cluster.world.admin.Patch(kTrainingJobs, kJobKey, PatchType::kMerge, request).ok());
  cluster.nodes.CrashProcess();
  cluster.RunUntil(
      [&] { return collect("Succeeded"); }, std::chrono::minutes(5), "it does not succeed");
  EXPECT_EQ(cluster.world.violations.first(), "");
}

// What is written only when training diverges, or buckets are taken over.
void AddOfTroubles(Paths& paths) {
  controller::JobReport report;
  report.message = "it waits";
  report.divergence = "the loss is not a number";
  report.last_failover = controller::FailoverReport{.failovers = 1};
  controller::JobState state;
  state.failovers = 1;
  const JobView view{.key = kJob.key,
                     .uid = kJob.uid,
                     .resource_version = "1",
                     .generation = 1,
                     .job = ReadTestJob(),
                     .problems = "",
                     .status = std::make_shared<v1::TrainingJobStatus>(),
                     .checkpoint_request = ""};
  v1::TrainingJobStatus status = StatusOf(report, {}, view, "2026-11-20T10:00:00Z");
  AddHistory(state, report, status);
  RestartCounter restarts;
  for (const controller::LossReason cause : controller::kLossReasons) {
    for (const auto role : {controller::Role::kWorker,
                            controller::Role::kDataServer,
                            controller::Role::kParameterServer}) {
      restarts.OnRestart(role, cause);
    }
  }
  restarts.Fill(1, status);
  AddWritten(MessageJson(status), "", paths);
}

TEST(StatusFieldsTest, EveryFieldThatTheSchemaPromisesIsWritten) {
  Paths promised;
  AddPromised(*v1::TrainingJobStatus::descriptor(), "", promised);
  Paths written;
  AddOfAWholeJob(written);
  EXPECT_THAT(written,
              IsSupersetOf({"active", "lastReportTime", "restarts", "roles.worker.restarts"}));
  EXPECT_THAT(written, Contains(HasSubstr(".restartCauses."))) << "of the one that crashed";
  AddOfTroubles(written);
  Paths missing;
  std::ranges::set_difference(promised, written, std::inserter(missing, missing.end()));
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace
}  // namespace adamant::kube
