#include "operator/local/run_folder/run_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "services/common/base/system/files.h"

namespace adamant::local {

bool IsInPlace(int descriptor, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    return errno != ENOENT && errno != ENOTDIR;  // else nobody knows
  }
  return fstat(descriptor, &opened) != 0 ||
         (opened.st_dev == found.st_dev && opened.st_ino == found.st_ino);
}

absl::StatusOr<RunFolder> RunFolder::Open(const RunPaths& paths) {
  const int root = open(paths.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    return SystemError(errno, "cannot open", paths.root);
  }
  RunFolder folder(paths, root);
  std::error_code error;
  std::filesystem::create_directory(paths.data(), error);
  if (error) {
    return SystemError(error.value(), "cannot create", paths.data());
  }
  folder.data_ = open(paths.data().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder.data_ < 0) {
    return SystemError(errno, "cannot open", paths.data());
  }
  return folder;
}

RunFolder::~RunFolder() {
  for (const int descriptor : {root_, data_}) {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : paths_(std::move(other.paths_)),
      root_(std::exchange(other.root_, -1)),
      data_(std::exchange(other.data_, -1)) {}

absl::Status RunFolder::CheckInPlace() const {
  const bool root = IsInPlace(root_, paths_.root);
  if (root && IsInPlace(data_, paths_.data())) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      root ? "the data of the run is not there any more: " + paths_.data().string() +
                 "; what ran was ended"
           : "the folder of the run is not there any more: " + paths_.root.string() +
                 "; what ran was ended. If it was renamed, adamant train --resume goes on in it");
}

}  // namespace adamant::local
