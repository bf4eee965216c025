#include "operator/local/finished_run.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/local/model/model_check.h"
#include "operator/local/run_folder/checkpoint_file.h"
#include "operator/local/state/resumption.h"
#include "operator/local/state/run_status.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_store.h"
#include "services/common/storage/segments/segment_store.h"

namespace adamant::local {
namespace {

// A store takes up to two of them more than what is in it.
constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 20;

}  // namespace

absl::Status TidyFinishedRun(const RunPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(const RunLock lock, RunLock::Acquire(paths, RunLock::Use::kControl));
  ADAMANT_ASSIGN_OR_RETURN(const std::vector<CheckpointManifest> manifests,
                           ReadCheckpointManifests(paths));
  std::set<std::uint64_t> kept;
  for (const CheckpointManifest& manifest : manifests) {
    kept.insert(manifest.checkpoint.snapshot);
  }
  std::error_code error;
  for (std::uint32_t slot = 0; std::filesystem::exists(paths.store_of(slot), error); ++slot) {
    const std::filesystem::path folder = paths.shards_of(slot);
    if (!std::filesystem::exists(folder, error)) {
      continue;
    }
    ADAMANT_ASSIGN_OR_RETURN(const std::unique_ptr<storage::SegmentStore> store,
                             storage::SegmentStore::Open(folder, {.segment_bytes = kSegmentBytes}));
    checkpoint::SnapshotStore snapshots(manifests.front().job_uid, *store);
    ADAMANT_RETURN_IF_ERROR(snapshots.KeepOnly(kept));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunOutcome> ShowFinishedRun(const v1::TrainingJob& job,
                                           const RunOptions& options,
                                           Observer& observer) {
  ADAMANT_ASSIGN_OR_RETURN(RunStatus run, ReadRunStatus(options.run_folder));
  const RunPaths paths(std::filesystem::absolute(options.run_folder));
  std::vector<std::string> texts = options.warnings;
  if (!options.changes.empty()) {
    texts.push_back(NothingTaken(job, paths, options.changes));
  }
  std::ranges::move(CheckModel(job, paths), std::back_inserter(texts));
  for (std::string& text : texts) {
    observer.OnNote({.kind = controller::Note::Kind::kWarning, .text = std::move(text)});
  }
  return RunOutcome{.report = std::move(run.report), .results = {}, .stored = absl::OkStatus()};
}

}  // namespace adamant::local
