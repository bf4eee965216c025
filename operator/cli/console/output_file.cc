#include "operator/cli/console/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace adamant::cli {

absl::Status CheckOutputFile(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty()) {
    return absl::OkStatus();
  }
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(path.string() + ": is a folder; name a file");
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(path.string() + ": there is no folder " + folder.string());
  }
  return absl::OkStatus();
}

absl::Status CheckOutputFolder(const std::filesystem::path& path) {
  std::error_code error;
  for (std::filesystem::path above = path; !above.empty(); above = above.parent_path()) {
    if (std::filesystem::exists(above, error)) {
      return std::filesystem::is_directory(above, error)
                 ? absl::OkStatus()
                 : absl::InvalidArgumentError(above.string() + ": is a file; name a folder");
    }
  }
  return absl::OkStatus();
}

std::FILE* SummaryStream(const std::filesystem::path& path) {
  struct stat file {};
  struct stat output {};
  const bool is_output = !path.empty() && stat(path.c_str(), &file) == 0 &&
                         fstat(STDOUT_FILENO, &output) == 0 && file.st_dev == output.st_dev &&
                         file.st_ino == output.st_ino;
  return is_output ? stderr : stdout;
}

absl::Status FlushOutput() {
  static int first = 0;  // the library tells a reason once
  errno = 0;
  if (std::fflush(stdout) != 0 && first == 0) {
    first = errno;
  }
  if (std::ferror(stdout) == 0 || first == EPIPE) {
    return absl::OkStatus();
  }
  const std::string why = first != 0 ? ": " + std::generic_category().message(first) : "";
  return absl::UnavailableError("cannot write standard output" + why);
}

}  // namespace adamant::cli
