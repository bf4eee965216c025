#include "operator/kube/job/job_body.h"
#include "proto/adamant/v1/resources.pb.h"

// Checkpoints that users ask for by an annotation, and how the status answers them.
namespace adamant::kube {

// A request that the status does not answer yet is passed on once by each leader.
void JobBody::HandleCheckpointRequest() {
  const std::string& wanted = view_->checkpoint_request;
  if (wanted.empty() || wanted == checkpoint_.request ||
      wanted == view_->status->checkpoint().request()) {
    return;
  }
  checkpoint_ = {.request = wanted, .after = controller_->state().last_snapshot};
  Handle(controller::CheckpointRequested{});
}

// Snapshots are numbered as they begin: what began before the request does not answer it.
void JobBody::AnswerCheckpointRequest(v1::TrainingJobStatus& status) const {
  const controller::Checkpoint& newest = controller_->state().checkpoint;
  if (newest.snapshot == 0) {
    return;
  }
  v1::CheckpointStatus& told = *status.mutable_checkpoint();
  told.set_epoch(static_cast<std::int64_t>(newest.epoch));
  const bool answered = !checkpoint_.request.empty() && newest.snapshot > checkpoint_.after;
  const std::string& request =
      answered ? checkpoint_.request : view_->status->checkpoint().request();
  if (!request.empty()) {
    told.set_request(request);
  }
}

}  // namespace adamant::kube
