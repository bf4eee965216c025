#include "operator/kube/job_view.h"

#include <nlohmann/json.hpp>

#include "operator/kube/client/json.h"
#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/job.h"

namespace adamant::kube {

std::shared_ptr<const JobView> ParseJobObject(const Json& object) {
  auto view = std::make_shared<JobView>();
  view->key = KeyOf(object);
  view->uid = UidOf(object);
  view->generation = IntAt(object, {"metadata", "generation"});
  view->deleting = !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
  job::ParseResult parsed = ReadJob(object);
  view->job = std::move(parsed.job);
  for (const job::Diagnostic& problem : parsed.problems) {
    view->problems += (view->problems.empty() ? "" : "\n") + problem.field_path + ": " +
                      problem.message + (problem.hint.empty() ? "" : "; " + problem.hint);
  }
  auto status = std::make_shared<v1::TrainingJobStatus>();
  // What cannot be read was not written by us, and is written anew.
  ReadStatus(object, *status).IgnoreError();
  view->status = std::move(status);
  return view;
}

}  // namespace adamant::kube
