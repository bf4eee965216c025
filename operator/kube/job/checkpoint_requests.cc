#include "operator/kube/job/checkpoint_requests.h"

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {

bool CheckpointRequests::Take(const JobView& view, std::uint64_t last_snapshot) {
  const std::string& wanted = view.checkpoint_request;
  if (wanted.empty() || wanted == request_ || wanted == view.status->checkpoint().request()) {
    return false;
  }
  request_ = wanted;
  after_ = last_snapshot;
  return true;
}

// Snapshots are numbered as they begin: what began before the request does not answer it.
void CheckpointRequests::Answer(const JobView& view,
                                const controller::Checkpoint& newest,
                                v1::TrainingJobStatus& status) const {
  if (newest.snapshot == 0) {
    return;
  }
  v1::CheckpointStatus& told = *status.mutable_checkpoint();
  told.set_epoch(static_cast<std::int64_t>(newest.epoch));
  const bool answered = !request_.empty() && newest.snapshot > after_;
  const std::string& request = answered ? request_ : view.status->checkpoint().request();
  if (!request.empty()) {
    told.set_request(request);
  }
}

}  // namespace adamant::kube
