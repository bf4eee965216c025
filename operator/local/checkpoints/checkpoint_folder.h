#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/checkpoints/records_file.h"
#include "services/common/base/ids.h"
#include "services/common/tensor/shape.h"

// A checkpoint that is saved whole, in a folder of its own: docs/design/0018-out-and-back-in.md.
namespace adamant::local {

/// Names of its files beside checkpoint.json.
inline constexpr char kSavedJob[] = "job.yaml";
inline constexpr char kSavedState[] = "controller";  ///< Records: state and results of the job
std::string SavedBucketName(BucketId bucket);        ///< Records of a bucket, by its live keys

/// Key of a bucket's mark (checkpoint::EncodeMark) among its records.
inline constexpr char kSavedMark[] = "mark";

struct SavedTensor {
  std::string name;
  Shape shape;

  bool operator==(const SavedTensor&) const = default;
};

struct SavedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string checksum;  ///< HexChecksum

  bool operator==(const SavedFile&) const = default;
};

/// Content of checkpoint.json.
struct SavedCheckpoint {
  std::string job;            ///< its name
  std::uint64_t job_uid = 0;  ///< which its records name
  std::uint64_t snapshot = 0;
  DataEpoch epoch = 0;  ///< open then, or just ended
  std::uint64_t buckets = 0;
  std::vector<SavedTensor> tensors;
  std::vector<SavedFile> files;
};

/// Writes a folder: under a temporary name, checkpoint.json last, then renamed. What is not
/// finished is removed. Threads: one.
class SavedCheckpointWriter {
 public:
  /// `folder` is to be new, or an empty one, and its TemporaryOf new. Errors: AlreadyExists when
  /// they are not; those of the file system.
  static absl::StatusOr<SavedCheckpointWriter> Begin(const std::filesystem::path& folder);

  ~SavedCheckpointWriter();
  SavedCheckpointWriter(SavedCheckpointWriter&& other) noexcept;
  SavedCheckpointWriter& operator=(SavedCheckpointWriter&&) = delete;

  /// Writes and syncs a file. Errors: as WriteFileAtomically.
  absl::Status Add(const std::string& name, std::string_view content);

  /// Adds checkpoint.json, `about` with the files, and puts the folder into its place. Errors: as
  /// Add; those of the file system.
  absl::Status Finish(SavedCheckpoint about);

 private:
  SavedCheckpointWriter(std::filesystem::path folder, std::filesystem::path temporary);

  std::filesystem::path folder_;
  std::filesystem::path temporary_;  // empty: nothing is to be removed
  std::vector<SavedFile> files_;
};

/// Reads checkpoint.json. Errors: NotFound without one; FailedPrecondition for another format
/// version, naming both; DataLoss when it is damaged; those of the file system; all name the file.
absl::StatusOr<SavedCheckpoint> ReadSavedCheckpoint(const std::filesystem::path& folder);

/// Reads a file of the folder. Errors: DataLoss when it is missing, or is not the one that
/// `about` names, by its size or its checksum; those of the file system.
absl::StatusOr<std::string> ReadSavedFile(const std::filesystem::path& folder,
                                          const SavedCheckpoint& about,
                                          const std::string& name);

/// The same of Records. Errors: also those of DecodeRecords.
absl::StatusOr<Records> ReadSavedRecords(const std::filesystem::path& folder,
                                         const SavedCheckpoint& about,
                                         const std::string& name);

}  // namespace adamant::local
