#include "operator/core/training/export_coordinator.h"

#include "operator/core/state/step.h"
#include "services/common/base/failpoint.h"

namespace adamant::controller {

void ExportCoordinator::Begin(TimePoint now) {
  EnterStep(Step::kExporting, state_, outbox_);
  snapshots_.Need();
  Start(now);
}

// Waits for primaries that are still to store the model.
void ExportCoordinator::Start(TimePoint now) {
  if (!snapshots_.IsReadable()) {
    retry_ = now + kRetry;
    return;
  }
  disturbed_ = false;
  ADAMANT_FAILPOINT("epoch/export");
  outbox_.Add(Export{state_.evaluated_snapshot});
}

std::optional<absl::Status> ExportCoordinator::OnExported(const Exported& exported, TimePoint now) {
  if (state_.step != Step::kExporting || exported.snapshot != state_.evaluated_snapshot) {
    return std::nullopt;
  }
  // A server is away; whether it comes back is the processes' matter.
  if (!exported.status.ok() && (absl::IsUnavailable(exported.status) || disturbed_)) {
    retry_ = now + kRetry;
    return std::nullopt;
  }
  return exported.status;
}

void ExportCoordinator::OnTimer(TimePoint now) {
  if (retry_ && *retry_ <= now) {
    retry_.reset();
    Start(now);
  }
}

}  // namespace adamant::controller
