#include "operator/core/training/data_reports.h"

#include <string>

namespace adamant::controller {

void DataReports::OnProgress(SlotId from,
                             const DataServerProgress& progress,
                             Clock::TimePoint now) {
  if (const absl::Status same = data_.OnFiles(from, progress.data_files); !same.ok()) {
    return outcome_.FailAsInvalid(std::string(same.message()));
  }
  if (progress.training_examples == 0) {
    return;
  }
  const absl::StatusOr<bool> is_new = data_.OnExamples(from, progress.training_examples);
  if (!is_new.ok()) {
    return outcome_.FailAsInvalid(std::string(is_new.status().message()));
  }
  if (*is_new && !settings_.starts_together) {
    starter_.StartRole(Role::kParameterServer, {}, now);
    starter_.StartRole(Role::kWorker, {}, now);
  }
}

}  // namespace adamant::controller
