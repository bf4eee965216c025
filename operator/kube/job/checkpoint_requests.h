#pragma once

#include <cstdint>
#include <string>

#include "operator/core/state/state.h"
#include "operator/kube/status/job_view.h"

namespace adamant::v1 {
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Checkpoints that users ask for by an annotation, and how the status answers them.
/// Threads: one.
class CheckpointRequests {
 public:
  /// Takes the request that the job has. Returns whether it is to be passed on: the status does not
  /// answer it yet, and this leader has not passed it on. `last_snapshot`: the newest that has
  /// begun.
  bool Take(const JobView& view, std::uint64_t last_snapshot);

  /// Says in `status` which checkpoint there is, and which request it answers.
  void Answer(const JobView& view,
              const controller::Checkpoint& newest,
              v1::TrainingJobStatus& status) const;

 private:
  std::string request_;      // that was passed on last
  std::uint64_t after_ = 0;  // the newest snapshot that had begun then
};

}  // namespace adamant::kube
