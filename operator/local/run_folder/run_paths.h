#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::local {

/// Paths at which a run keeps what it leaves behind.
struct RunPaths {
  explicit RunPaths(std::filesystem::path folder) : root(std::move(folder)) {}

  std::filesystem::path root;

  [[nodiscard]] std::filesystem::path job() const { return root / "job.yaml"; }
  [[nodiscard]] std::filesystem::path started() const { return root / "started.yaml"; }
  [[nodiscard]] std::filesystem::path plan() const { return root / "plan.txt"; }
  [[nodiscard]] std::filesystem::path events() const { return root / "events.jsonl"; }
  [[nodiscard]] std::filesystem::path metrics() const { return root / "metrics.csv"; }
  [[nodiscard]] std::filesystem::path curve() const { return root / "learning-curve.svg"; }
  [[nodiscard]] std::filesystem::path safetensors() const { return root / "model.safetensors"; }
  [[nodiscard]] std::filesystem::path onnx() const { return root / "model.onnx"; }
  [[nodiscard]] std::filesystem::path logs() const { return root / "logs"; }
  [[nodiscard]] std::filesystem::path data() const { return root / "data"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  [[nodiscard]] std::filesystem::path checkpoint(std::uint64_t snapshot) const {
    return checkpoints() / (std::to_string(snapshot) + ".json");
  }
  /// Copies of whole checkpoints are folders beside the manifests.
  [[nodiscard]] std::filesystem::path copy_of(std::uint64_t snapshot) const {
    return checkpoints() / ("checkpoint-" + std::to_string(snapshot));
  }
  [[nodiscard]] std::filesystem::path store_of(std::uint32_t parameter_server) const {
    return data() / ("parameter-server-" + std::to_string(parameter_server));
  }
  [[nodiscard]] std::filesystem::path shards_of(std::uint32_t parameter_server) const {
    return store_of(parameter_server) / "shards";
  }
  /// Place of what a run begins with, as long as it is not in data().
  [[nodiscard]] std::filesystem::path start() const { return root / "start"; }
  [[nodiscard]] std::filesystem::path controller() const { return root / "controller"; }
  [[nodiscard]] std::filesystem::path controller_copy() const { return root / "controller.copy"; }
  [[nodiscard]] std::filesystem::path endpoint() const { return root / "endpoint"; }
  [[nodiscard]] std::filesystem::path lock() const { return root / "lock"; }
};

/// Keeps every other program off a run's folder, as long as it lives; the system lets go when the
/// process dies, however it dies.
/// Threads: static members from any; who moves or destroys one is alone with it.
class RunLock {
 public:
  enum class Use : std::uint8_t {
    kControl,  ///< runs the job
    kRead,     ///< reads the stores of a run that does not run
  };

  /// Errors: Aborted when another process holds it, for whatever use; DataLoss where it is no file
  /// and cannot be opened; those of the file system.
  static absl::StatusOr<RunLock> Acquire(const RunPaths& paths, Use use);

  /// Returns whether a controller has the run. Takes no lock itself, so it disturbs nobody.
  /// Errors: those of the file system.
  static absl::StatusOr<bool> IsControlled(const RunPaths& paths);

  /// Error: Aborted when a controller has the run; says how to look at it. As IsControlled.
  static absl::Status CheckFree(const RunPaths& paths);

  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// Error: Aborted, saying that another program has the run and how to look at it.
absl::Status InUse(const RunPaths& paths);

/// Checks that the path of a run that is to begin or go on is text: its processes are sent it.
/// Error: InvalidArgument.
absl::Status CheckPath(const RunPaths& paths);

/// Creates the folder of a new run with its subfolders and `job` as job.yaml. Where that fails,
/// what it has made is gone again. Errors: AlreadyExists when it holds a run or other files;
/// InvalidArgument when its path is not UTF-8; those of the file system.
absl::Status CreateRunFolder(const RunPaths& paths, std::string_view job);

/// Moves aside (storage::SetAside) what is in the place of a process's folder and is no folder, so
/// that the process begins with an empty one. Returns what is to be told; "" where nothing is.
std::string SetStrangerAside(const std::filesystem::path& data);

/// Returns whether anything is where the controller's state is kept, in either place.
bool HasState(const RunPaths& paths);

/// Returns whether the folder holds a run; somebody may have removed it meanwhile.
bool CanBeResumed(const RunPaths& paths);

/// The same, where a manifest alone is no run. Error: NotFound, saying what is missing or no file,
/// and how it is put back where all but the manifest is there.
absl::Status CheckHoldsRun(const RunPaths& paths);

/// Checks that those files of a run that are there, and its logs, are files (storage::CheckIsFile):
/// a program that opens a FIFO waits for ever. Error: DataLoss, naming all that are none and saying
/// what to do.
absl::Status CheckRunFiles(const RunPaths& paths);

/// The same of the folder of its processes' data.
absl::Status CheckDataFolder(const RunPaths& paths);

/// The same of the files of the run's model.
absl::Status CheckModelFiles(const RunPaths& paths);

/// Checks that this process may write to a run's folders and to the files that its programs keep
/// there, as it may not where another user ran them. Error: of the file system, naming the first.
absl::Status CheckRunIsWritable(const RunPaths& paths);

/// Removes what programs that were killed while they wrote files of the run have left beside these
/// (TemporaryOf). The caller holds the lock.
void RemoveLeftovers(const RunPaths& paths);

/// Creates a folder in `parent` for a run of this job: its name and the time. Of those who do so at
/// once each gets one of its own. Errors: of the file system.
absl::StatusOr<std::filesystem::path> MakeRunFolder(const std::filesystem::path& parent,
                                                    const std::string& job);

}  // namespace adamant::local
