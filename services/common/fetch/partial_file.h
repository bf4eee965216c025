#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/sha256.h"

namespace adamant::fetch {

/// A file that is being fetched, beside the place where it will appear: what an earlier process has
/// left of it is kept, and summed up.
/// Threads: one thread at a time.
/// Errors: ResourceExhausted for a full disk, else those of the file system.
class PartialFile {
 public:
  /// Of the file that is to appear at `target`, in a folder that exists.
  static absl::StatusOr<PartialFile> Open(const std::filesystem::path& target);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] std::string Sum() const { return sum_.Hex(); }

  absl::Status Append(std::string_view bytes);

  /// Drops what there is.
  absl::Status Restart();

  /// Makes it durable and lets it appear at the target. Last call.
  absl::Status Finish();

  /// Removes it. Last call.
  void Remove();

 private:
  PartialFile(const std::filesystem::path& target, int descriptor);

  std::filesystem::path target_;
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
  Sha256Sum sum_;
};

/// Sum of the file at `path`. Errors: NotFound; those of the file system.
absl::StatusOr<std::string> SumOf(const std::filesystem::path& path);

}  // namespace adamant::fetch
