#include "operator/kube/job_view.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/kube/client/json.h"
#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/job.pb.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/job/job.h"

namespace adamant::kube {
namespace {

void AddProblem(const std::string& problem, JobView& view) {
  view.problems += (view.problems.empty() ? "" : "\n") + problem;
}

// What manifests may say and the operator does not do yet is refused, lest it be relied upon.
void RefuseWhatIsNotDoneYet(JobView& view) {
  const v1::JobSpec& spec = view.job->spec();
  for (const auto& [name, source] : {std::pair("train", &spec.data().train()),
                                     std::pair("validation", &spec.data().validation())}) {
    if (!source->has_digits()) {
      AddProblem(std::string("spec.data.") + name + ": only digits are available in a cluster yet",
                 view);
    }
  }
  if (spec.run_policy().failure_rules_size() > 0) {
    AddProblem("spec.runPolicy.failureRules: not available yet", view);
  }
  if (!view.problems.empty()) {
    view.job = nullptr;
  }
}

}  // namespace

std::shared_ptr<const JobView> ParseJobObject(const Json& object) {
  auto view = std::make_shared<JobView>();
  view->key = KeyOf(object);
  view->uid = UidOf(object);
  view->generation = IntAt(object, {"metadata", "generation"});
  view->deleting = !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
  job::ParseResult parsed = ReadJob(object);
  view->job = std::move(parsed.job);
  for (const job::Diagnostic& problem : parsed.problems) {
    AddProblem(problem.field_path + ": " + problem.message +
                   (problem.hint.empty() ? "" : "; " + problem.hint),
               *view);
  }
  if (view->job != nullptr) {
    RefuseWhatIsNotDoneYet(*view);
  }
  auto status = std::make_shared<v1::TrainingJobStatus>();
  // What cannot be read was not written by us, and is written anew.
  ReadStatus(object, *status).IgnoreError();
  view->status = std::move(status);
  return view;
}

}  // namespace adamant::kube
