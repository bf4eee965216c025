#include "services/common/fetch/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::fetch {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

// Adds all bytes from the descriptor's position on to `sum`; returns how many.
absl::StatusOr<std::uint64_t> SumUp(int descriptor,
                                    const std::filesystem::path& path,
                                    Sha256Sum& sum) {
  std::vector<char> block(kBlockBytes);
  std::uint64_t bytes = 0;
  while (true) {
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count == 0) {
      return bytes;
    }
    if (count > 0) {
      sum.Add({block.data(), static_cast<std::size_t>(count)});
      bytes += static_cast<std::uint64_t>(count);
    } else if (errno != EINTR) {
      return SystemError(errno, "cannot read", path);
    }
  }
}

absl::Status SyncFolder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return SystemError(errno, "cannot open", folder);
  }
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : SystemError(error, "cannot sync", folder);
}

}  // namespace

absl::StatusOr<PartialFile> PartialFile::Open(const std::filesystem::path& target) {
  const std::filesystem::path path = target.string() + ".part";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return SystemError(errno, "cannot create", path);
  }
  PartialFile file(target, descriptor);
  ADAMANT_ASSIGN_OR_RETURN(file.size_, SumUp(descriptor, path, file.sum_));
  return file;
}

PartialFile::PartialFile(const std::filesystem::path& target, int descriptor)
    : target_(target), path_(target.string() + ".part"), descriptor_(descriptor) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      sum_(std::move(other.sum_)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

absl::Status PartialFile::Append(std::string_view bytes) {
  sum_.Add(bytes);
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return SystemError(errno, "cannot write", path_);
    }
  }
  return absl::OkStatus();
}

absl::Status PartialFile::Restart() {
  if (ftruncate(descriptor_, 0) != 0 || lseek(descriptor_, 0, SEEK_SET) != 0) {
    return SystemError(errno, "cannot empty", path_);
  }
  size_ = 0;
  sum_ = {};
  return absl::OkStatus();
}

absl::Status PartialFile::Finish() {
  if (fsync(descriptor_) != 0) {
    return SystemError(errno, "cannot sync", path_);
  }
  if (rename(path_.c_str(), target_.c_str()) != 0) {
    return SystemError(errno, "cannot rename to", target_);
  }
  return SyncFolder(target_.parent_path());
}

void PartialFile::Remove() { unlink(path_.c_str()); }

absl::StatusOr<std::string> SumOf(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return SystemError(errno, "cannot open", path);
  }
  Sha256Sum sum;
  const absl::StatusOr<std::uint64_t> bytes = SumUp(descriptor, path, sum);
  close(descriptor);
  ADAMANT_RETURN_IF_ERROR(bytes.status());
  return sum.Hex();
}

}  // namespace adamant::fetch
