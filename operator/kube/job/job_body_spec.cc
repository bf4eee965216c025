#include <chrono>
#include <utility>

#include "operator/control/codec.h"
#include "operator/kube/job/job_body.h"
#include "operator/kube/job/job_body_inbox.h"
#include "operator/kube/volumes/data_claims.h"
#include "proto/adamant/v1/job.pb.h"

// What the controller needs of a job's spec, and what users may change of it while the job runs.
namespace adamant::kube {
namespace {

constexpr std::chrono::minutes kJoinTimeout{15};  // a node may have to fetch the image
constexpr std::chrono::seconds kExitDelay{10};    // a busy node tells late that a container ended

}  // namespace

controller::JobSettings JobBody::Settings() const {
  controller::JobSettings settings = control::SettingsOf(*view_->job);
  settings.join_timeout = kJoinTimeout;
  settings.exit_delay = kExitDelay;
  return settings;
}

void JobBody::ServeJob() {
  context_.control.AddJob(
      job_.uid, *view_->job, kDataRoot, [inbox = inbox_](controller::Event event) {
        inbox->Push(std::move(event));
      });
}

void JobBody::HandleSpec() {
  if (generation_ != view_->generation) {
    if (std::exchange(generation_, view_->generation) != 0) {
      ServeJob();  // to processes that start from now on
    }
    Handle(controller::SpecChanged{Settings()});
  }
}

}  // namespace adamant::kube
