#include "operator/core/training/data_identity.h"

#include <algorithm>

namespace adamant::controller {
namespace {

constexpr std::size_t kMostDataFiles = 4;  // images and labels, to train and to validate

}  // namespace

void DataIdentity::AcceptOthers() {
  for (const DataFile& file : state_.data_files) {
    replaceable_.insert(file.field);
  }
}

std::vector<DataFile> DataIdentity::Binding() const {
  std::vector<DataFile> files = state_.data_files;
  std::erase_if(files, [&](const DataFile& file) { return replaceable_.contains(file.field); });
  return files;
}

absl::Status DataIdentity::OnFiles(SlotId from, const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    const auto known = std::ranges::find(state_.data_files, file.field, &DataFile::field);
    if (replaceable_.erase(file.field) > 0) {
      known->fingerprint = file.fingerprint;
      outbox_.StateChanged();
    }
    if (known != state_.data_files.end() && known->fingerprint != file.fingerprint) {
      return absl::FailedPreconditionError(
          file.field + ": " + ToString(from) +
          " reads another file than the job began with; all data servers need the same files, and "
          "these must stay as they are");
    }
    if (known == state_.data_files.end() && state_.data_files.size() < kMostDataFiles) {
      state_.data_files.push_back(file);
      outbox_.StateChanged();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DataIdentity::OnExamples(SlotId from, std::uint64_t examples) {
  const std::uint64_t known = TrainingExamples(settings_, state_);
  if (known != 0 && examples != known) {
    return absl::FailedPreconditionError(
        "spec.data.train: " + ToString(from) + " has " + std::to_string(examples) +
        " examples, but the job began with " + std::to_string(known) +
        "; all data servers need the same files, and these must stay as they are");
  }
  if (state_.training_examples == 0) {  // the settings may know it; who resumes the job compares
    state_.training_examples = examples;
    outbox_.StateChanged();
  }
  return known == 0;
}

}  // namespace adamant::controller
