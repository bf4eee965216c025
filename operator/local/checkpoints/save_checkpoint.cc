#include "operator/local/checkpoints/save_checkpoint.h"

#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/checkpoints/checkpoint_folder.h"
#include "operator/local/model/trained_model.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/checkpoint/snapshot_format.h"
#include "services/common/job/job.h"
#include "services/common/storage/segments/segment_reader.h"

namespace adamant::local {
namespace {

// A server that runs moves values while they are read: the store is opened anew then.
constexpr int kTries = 10;
constexpr std::chrono::milliseconds kPause{100};

absl::StatusOr<controller::JobState> StateOf(const CheckpointSource& source) {
  const auto found = source.entries.find(controller::kStateKey);
  if (found == source.entries.end()) {
    return absl::NotFoundError(source.paths.root.string() + " holds no checkpoint yet");
  }
  ADAMANT_ASSIGN_OR_RETURN(controller::JobState state, controller::DecodeState(found->second));
  if (state.checkpoint.snapshot == 0 || state.checkpoint.buckets.empty()) {
    return absl::NotFoundError(source.paths.root.string() + " holds no checkpoint yet");
  }
  return state;
}

// Reads the buckets of one checkpoint from the stores that hold them.
class BucketReader {
 public:
  BucketReader(const RunPaths& paths, const controller::Checkpoint& checkpoint)
      : paths_(paths), checkpoint_(checkpoint) {}

  absl::StatusOr<Records> Read(BucketId bucket) {
    absl::StatusOr<Records> records;
    for (int i = 0; i < kTries; ++i) {
      records = Try(bucket);
      if (records.ok()) {
        break;
      }
      stores_.erase(checkpoint_.buckets[bucket].slot);
      std::this_thread::sleep_for(kPause);
    }
    return records;
  }

 private:
  absl::StatusOr<Records> Try(BucketId bucket) {
    const controller::CheckpointBucket& expected = checkpoint_.buckets[bucket];
    const std::string name = "bucket " + std::to_string(bucket.value()) + " of checkpoint " +
                             std::to_string(checkpoint_.snapshot);
    std::unique_ptr<storage::SegmentReader>& store = stores_[expected.slot];
    if (store == nullptr) {
      ADAMANT_ASSIGN_OR_RETURN(store,
                               storage::SegmentReader::Open(paths_.shards_of(expected.slot)));
    }
    const auto mark = store->Get(checkpoint::MarkKey(checkpoint_.snapshot, bucket));
    if (absl::IsNotFound(mark.status())) {
      return absl::DataLossError(name + " is missing");
    }
    ADAMANT_RETURN_IF_ERROR(mark.status());
    ADAMANT_ASSIGN_OR_RETURN(const auto about, checkpoint::DecodeMark(bucket, *mark));
    Records records;
    checkpoint::ValueChecksums checksums;
    const std::string prefix = checkpoint::CopyPrefix(checkpoint_.snapshot, bucket);
    ADAMANT_RETURN_IF_ERROR(store->Scan(prefix, [&](std::string_view key, std::string_view value) {
      std::string live(key.substr(prefix.size()));
      checksums[live] = Checksum(std::as_bytes(std::span(value)));
      records.emplace(std::move(live), value);
      return true;
    }));
    if (about.generation != expected.generation || about.updates != expected.updates ||
        about.checksum != expected.checksum ||
        checkpoint::ChecksumOf(checksums) != expected.checksum) {
      return absl::DataLossError(name + " is not as it was stored");
    }
    records.emplace(kSavedMark, *mark);
    return records;
  }

  const RunPaths& paths_;
  const controller::Checkpoint& checkpoint_;
  std::map<std::uint32_t, std::unique_ptr<storage::SegmentReader>> stores_;  // by slot
};

// Of what a controller stores: its state, and the results of epochs.
std::string EncodeController(const CheckpointSource& source) {
  Records records;
  for (const auto& [key, value] : source.entries) {
    if (key == controller::kStateKey || key.starts_with(controller::kResultPrefix)) {
      records.emplace(key, value);
    }
  }
  return EncodeRecords(records);
}

}  // namespace

absl::StatusOr<std::uint64_t> NewestCheckpoint(const CheckpointSource& source) {
  ADAMANT_ASSIGN_OR_RETURN(const controller::JobState state, StateOf(source));
  return state.checkpoint.snapshot;
}

absl::Status SaveCheckpoint(const CheckpointSource& source,
                            const std::filesystem::path& folder,
                            const std::stop_token& stop) {
  ADAMANT_ASSIGN_OR_RETURN(const controller::JobState state, StateOf(source));
  ADAMANT_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModelOf(source.job));
  ADAMANT_ASSIGN_OR_RETURN(SavedCheckpointWriter writer, SavedCheckpointWriter::Begin(folder));
  SavedCheckpoint about{.job = source.job.metadata().name(),
                        .job_uid = state.job_uid,
                        .snapshot = state.checkpoint.snapshot,
                        .epoch = state.checkpoint.epoch,
                        .buckets = state.checkpoint.buckets.size(),
                        .tensors = {},
                        .files = {}};
  for (const Parameter& parameter : model.graph.parameters) {
    about.tensors.push_back({.name = parameter.name, .shape = parameter.shape});
  }
  ADAMANT_RETURN_IF_ERROR(writer.Add(kSavedJob, job::ToYaml(source.job)));
  ADAMANT_RETURN_IF_ERROR(writer.Add(kSavedState, EncodeController(source)));
  BucketReader reader(source.paths, state.checkpoint);
  for (BucketId bucket = 0; bucket < about.buckets; ++bucket) {
    if (stop.stop_requested()) {
      return absl::CancelledError("the job ends");
    }
    ADAMANT_ASSIGN_OR_RETURN(const Records records, reader.Read(bucket));
    ADAMANT_RETURN_IF_ERROR(writer.Add(SavedBucketName(bucket), EncodeRecords(records)));
  }
  return writer.Finish(std::move(about));
}

}  // namespace adamant::local
