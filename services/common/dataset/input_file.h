#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::dataset {

/// A file read front to back; a gzip file (told by its first bytes) is inflated on the way, in
/// constant memory. Several gzip members count as one content.
/// Threads: one thread at a time.
/// Errors: NotFound, PermissionDenied, Unavailable from the system; DataLoss for a damaged or cut
/// gzip stream, with the offset in the file. All name the path.
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);

  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  /// Fills `out`; returns how much, less than its size only at the end of the content.
  absl::StatusOr<std::size_t> Read(std::span<std::uint8_t> out);

  /// The same from an offset of the content of a file that is not compressed; Read goes on where it
  /// was. Threads: any.
  [[nodiscard]] absl::StatusOr<std::size_t> ReadAt(std::uint64_t offset,
                                                   std::span<std::uint8_t> out) const;

  /// The same from an offset of the file as it is, compressed or not. Threads: any.
  [[nodiscard]] absl::StatusOr<std::size_t> ReadFileAt(std::uint64_t offset,
                                                       std::span<std::uint8_t> out) const;

  [[nodiscard]] const std::string& path() const;

  [[nodiscard]] bool compressed() const;

  /// The file's size when it was opened, compressed or not.
  [[nodiscard]] std::uint64_t file_bytes() const;

  /// Content bytes read so far.
  [[nodiscard]] std::uint64_t offset() const;

  /// Returns what the content cannot exceed: the file's size, or for gzip 1032 times that (the most
  /// that deflate can express). Known before anything is read, so that sizes a header promises can
  /// be refused before memory is taken for them.
  [[nodiscard]] std::uint64_t max_content_bytes() const;

 private:
  struct Impl;
  explicit InputFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `content` as a gzip file of one member without name and time: equal content gives equal bytes.
std::string Gzip(std::span<const std::uint8_t> content);

}  // namespace adamant::dataset
