#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::local {

/// Returns whether what is open is what is in the place; true where nobody knows.
bool IsInPlace(int descriptor, const std::filesystem::path& path);

/// The folder of a run that runs, which somebody may remove or rename, or put another in its place:
/// what is open then goes on being written, and what is not can only be made anew by mistake.
/// Threads: CheckInPlace from any; who moves or destroys it is alone with it.
class RunFolder {
 public:
  /// Makes the folder of the data where it is missing. Errors: those of the file system.
  static absl::StatusOr<RunFolder> Open(const RunPaths& paths);

  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  /// Checks that the folder and its data are still those in their places. Four system calls.
  /// Error: NotFound, saying what to do. What else keeps from looking is none.
  [[nodiscard]] absl::Status CheckInPlace() const;

 private:
  RunFolder(const RunPaths& paths, int root) : paths_(paths), root_(root) {}

  RunPaths paths_;
  int root_ = -1;  // open, so that no other folder gets its number
  int data_ = -1;
};

}  // namespace adamant::local
