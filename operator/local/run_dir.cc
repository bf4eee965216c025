#include "operator/local/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"

namespace adamant::local {
namespace {

absl::Status MakeFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? SystemError(error.value(), "cannot create", path) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunLock> RunLock::Acquire(const RunPaths& paths) {
  const int descriptor = open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return SystemError(errno, "cannot open", paths.lock());
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(descriptor);
    if (error == EWOULDBLOCK) {
      return absl::AbortedError(paths.root.string() +
                                " is in use by another adamant; look at it with `adamant status " +
                                paths.root.string() + "`");
    }
    return SystemError(error, "cannot lock", paths.lock());
  }
  return RunLock(descriptor);
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

absl::Status CreateRunDir(const RunPaths& paths) {
  std::error_code error;
  if (std::filesystem::exists(paths.root, error) && !std::filesystem::is_empty(paths.root, error) &&
      !error) {
    return absl::AlreadyExistsError(
        paths.root.string() +
        " is not empty; continue the run in it with --resume, or name another folder");
  }
  ADAMANT_RETURN_IF_ERROR(MakeFolder(paths.root));
  ADAMANT_RETURN_IF_ERROR(MakeFolder(paths.logs()));
  return MakeFolder(paths.data());
}

std::filesystem::path NewRunDirName(const std::filesystem::path& parent, const std::string& job) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  const std::filesystem::path first = parent / (job + "-" + stamp);
  std::filesystem::path name = first;
  std::error_code error;
  for (int i = 2; std::filesystem::exists(name, error); ++i) {
    name = first;
    name += "-" + std::to_string(i);
  }
  return name;
}

}  // namespace adamant::local
