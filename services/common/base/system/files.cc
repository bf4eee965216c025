#include "services/common/base/system/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"

namespace adamant {
namespace {

constexpr std::string_view kNoInode = " (there is room, but no inode: too many files)";

// An open file descriptor, closed at the end of the scope.
class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

// Writes all of it. `path`: for messages.
absl::Status WriteAll(int descriptor, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t count = write(descriptor, content.data(), content.size());
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return SystemError(errno, "cannot write", path);
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status WriteAndSync(const std::filesystem::path& path, std::string_view content) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);  // a FIFO would wait
  if (file.get() < 0) {
    return SystemError(errno, "cannot create", path);
  }
  ADAMANT_RETURN_IF_ERROR(WriteAll(file.get(), content, path));
  if (fsync(file.get()) != 0) {
    return SystemError(errno, "cannot sync", path);
  }
  return absl::OkStatus();
}

std::string_view NameOf(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::regular:
      return "a file";
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a FIFO";
    case std::filesystem::file_type::symlink:  // one that can be followed is what it leads to
      return "a link that leads to itself";
    case std::filesystem::file_type::not_found:
      return "a link that leads nowhere";
    default:
      return "a socket or a device";
  }
}

std::filesystem::file_type TypeOf(const struct stat& found) {
  return S_ISDIR(found.st_mode)    ? std::filesystem::file_type::directory
         : S_ISFIFO(found.st_mode) ? std::filesystem::file_type::fifo
                                   : std::filesystem::file_type::unknown;
}

absl::Status TooLarge(const std::filesystem::path& path, std::uint64_t max_bytes) {
  return absl::OutOfRangeError(path.string() + ": larger than the limit of " +
                               std::to_string(max_bytes) + " bytes");
}

// Whether the message has the text of this error of the system.
bool Tells(int error, std::string_view message) {
  return message.find(std::generic_category().message(error)) != std::string_view::npos;
}

/// Of a link that ends at nothing the system says only that something is not there.
std::string DanglingHint(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    return "";
  }
  return " (it is a link to " + std::filesystem::read_symlink(path, error).string() + ")";
}

}  // namespace

absl::Status SystemError(int error, std::string_view what, const std::filesystem::path& path) {
  const std::string message =
      std::string(what) + " " + path.string() + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message + DanglingHint(path));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
      return absl::ResourceExhaustedError(message + InodeHint(path));
    case EDQUOT:
    case EFBIG:  // a limit of file sizes is a full disk to who writes
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

bool IsOpenFileLimit(std::string_view message) {
  return Tells(EMFILE, message) || Tells(ENFILE, message);
}

bool IsFileSizeLimit(std::string_view message) { return Tells(EFBIG, message); }

bool ExceedsFileSizeLimit(std::uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         bytes > limit.rlim_cur;
}

std::string InodeHint(const std::filesystem::path& path) {
  struct statvfs system {};
  const bool known = statvfs(path.c_str(), &system) == 0 ||
                     statvfs(path.parent_path().c_str(), &system) == 0;  // it could not be made
  return known && system.f_bavail > 0 && system.f_files > 0 && system.f_favail == 0
             ? std::string(kNoInode)
             : "";
}

std::string WhatMakesRoom(std::string_view message) {
  if (message.find(kNoInode) != std::string_view::npos) {
    return "remove files from that disk";
  }
  if (IsFileSizeLimit(message)) {
    return "raise the limit of file sizes (ulimit -f)";
  }
  if (IsOpenFileLimit(message)) {
    return "raise the limit of open files (ulimit -n)";
  }
  return Tells(ENOSPC, message) || Tells(EDQUOT, message) ? "make room on that disk" : "";
}

std::string DescribeFull(const absl::Status& full) {
  const std::string message(full.message());
  if (IsFileSizeLimit(message)) {
    return "cannot write: a file may not grow (ulimit -f): " + message;
  }
  if (IsOpenFileLimit(message)) {
    return "cannot open files: too many are open (ulimit -n): " + message;
  }
  return "disk full: " + message;
}

absl::Status Misplaced(const std::filesystem::path& path,
                       std::filesystem::file_type found,
                       std::filesystem::file_type wanted) {
  std::error_code error;
  const std::string end = found == std::filesystem::file_type::not_found
                              ? " (to " + std::filesystem::read_symlink(path, error).string() +
                                    ": is its disk mounted?)"
                              : "";
  return absl::DataLossError(path.string() + ": is " + std::string(NameOf(found)) + end +
                             ", where " + std::string(NameOf(wanted)) + " belongs");
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     std::uint64_t max_bytes,
                                     Pipes pipes) {
  const File file(path, O_RDONLY | (pipes == Pipes::kRefused ? O_NONBLOCK : 0));
  if (file.get() < 0) {
    return SystemError(errno, "cannot open", path);
  }
  struct stat found {};
  if (fstat(file.get(), &found) != 0) {
    return SystemError(errno, "cannot read", path);
  }
  if (pipes == Pipes::kRefused && !S_ISREG(found.st_mode)) {
    return Misplaced(path, TypeOf(found), std::filesystem::file_type::regular);
  }
  if (S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) > max_bytes) {
    return TooLarge(path, max_bytes);
  }
  std::string content;
  char block[65536];
  while (true) {
    const ssize_t count = read(file.get(), block, sizeof(block));
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return SystemError(errno, "cannot read", path);
    }
    if (count == 0) {
      return content;
    }
    content.append(block, static_cast<std::size_t>(count));
    if (content.size() > max_bytes) {
      return TooLarge(path, max_bytes);
    }
  }
}

std::filesystem::path TemporaryOf(std::filesystem::path path) { return path += ".tmp"; }

absl::Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path temporary = TemporaryOf(path);
  if (const absl::Status status = WriteAndSync(temporary, content); !status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  ADAMANT_FAILPOINT("file/rename");
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return error == EISDIR ? Misplaced(path,
                                       std::filesystem::file_type::directory,
                                       std::filesystem::file_type::regular)
                           : SystemError(error, "cannot rename to", path);
  }
  return SyncFolder(path.has_parent_path() ? path.parent_path() : ".");
}

// One that may not be read is as durable as its file system makes it.
absl::Status SyncFolder(const std::filesystem::path& path) {
  const File folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.get() >= 0 && fsync(folder.get()) != 0) {
    return SystemError(errno, "cannot sync", path);
  }
  return absl::OkStatus();
}

absl::Status MakeFolder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? SystemError(error.value(), "cannot create", path) : absl::OkStatus();
}

std::filesystem::path EndOfLinks(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

bool LeadsNowhere(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error) &&
         std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found;
}

absl::Status WriteFile(const std::filesystem::path& path, std::string_view content, Pipes pipes) {
  struct stat found {};
  const bool is_there = stat(path.c_str(), &found) == 0;
  if (!is_there && errno != ENOENT) {
    return SystemError(errno, "cannot open", path);
  }
  if (!is_there || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode)) {
    return WriteFileAtomically(EndOfLinks(path), content);
  }
  if (pipes == Pipes::kRefused) {
    return Misplaced(path, TypeOf(found), std::filesystem::file_type::regular);
  }
  const File file(path, O_WRONLY);
  if (file.get() < 0) {
    return SystemError(errno, "cannot open", path);
  }
  return WriteAll(file.get(), content, path);
}

}  // namespace adamant
