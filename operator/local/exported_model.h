#pragma once

#include <cstdint>

#include "operator/core/job/job_controller.h"
#include "operator/local/model/fetch_model.h"
#include "services/common/export/safetensors.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// A model that is to be written, and what its files say of it.
struct ExportedModel {
  ModelSource source;
  exports::Metadata metadata;
};

/// Returns where the model of this snapshot, that of the job's last result, is to be had.
ExportedModel ModelToExport(const controller::JobController& controller,
                            const v1::TrainingJob& job,
                            std::uint64_t snapshot);

}  // namespace adamant::local
