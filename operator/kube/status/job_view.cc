#include "operator/kube/status/job_view.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/job.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kLongestRequest = 63;

void AddProblem(const std::string& problem, JobView& view) {
  view.problems += (view.problems.empty() ? "" : "\n") + problem;
}

void ParseSpec(const Json& object, JobView& view) {
  job::ParseResult parsed = ReadJob(object);
  view.job = std::move(parsed.job);
  for (const job::Diagnostic& problem : parsed.problems) {
    AddProblem(problem.field_path + ": " + problem.message +
                   (problem.hint.empty() ? "" : "; " + problem.hint),
               view);
  }
}

// A number of workers that makes a job invalid leaves the one that is in force as it is, also for
// an operator that has not seen the job before.
std::shared_ptr<const v1::TrainingJob> WithWorkersInForce(Json object,
                                                          const v1::TrainingJobStatus& status) {
  const std::int64_t workers = status.roles().worker().desired();
  if (workers == 0) {
    return nullptr;
  }
  object.merge_patch({{"spec", {{"distribution", {{"workers", workers}}}}}});
  JobView view;
  ParseSpec(object, view);
  return view.job;
}

}  // namespace

bool LeavesPods(const v1::TrainingJob& job) {
  return job.spec().run_policy().clean_up_policy().pods() == v1::CleanUpPolicy::PODS_NONE;
}

std::shared_ptr<const JobView> WithOldDefaults(std::shared_ptr<const JobView> view) {
  if (view->names_copies || view->job == nullptr) {
    return view;
  }
  auto job = std::make_shared<v1::TrainingJob>(*view->job);
  auto& servers = *job->mutable_spec()->mutable_distribution()->mutable_parameter_servers();
  servers.set_copies(1);
  servers.set_min_in_sync(1);
  auto old = std::make_shared<JobView>(*view);
  old->job = std::move(job);
  return old;
}

std::shared_ptr<const JobView> ParseJobObject(const Json& object) {
  auto view = std::make_shared<JobView>();
  view->key = KeyOf(object);
  view->uid = UidOf(object);
  view->resource_version = ResourceVersionOf(object);
  view->generation = IntAt(object, {"metadata", "generation"});
  view->deleting = !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
  view->checkpoint_request = StringAt(object, {"metadata", "annotations", kCheckpointAnnotation})
                                 .substr(0, kLongestRequest);
  view->names_copies =
      object.contains(Json::json_pointer("/spec/distribution/parameterServers/copies"));
  ParseSpec(object, *view);
  auto status = std::make_shared<v1::TrainingJobStatus>();
  // What cannot be read was not written by us, and is written anew.
  ReadStatus(object, *status).IgnoreError();
  if (view->job == nullptr) {
    view->job = WithWorkersInForce(object, *status);
  }
  view->status = std::move(status);
  return view;
}

}  // namespace adamant::kube
