#include "services/common/job/idx_header.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/status_macros.h"

namespace adamant::job {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kExtentBytes = 4;
constexpr unsigned char kUnsignedByte = 0x08;
constexpr std::size_t kMaxExtents = 4;

/// A file read through zlib, which also reads files that are not compressed.
class Reader {
 public:
  static absl::StatusOr<Reader> Open(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
      return absl::NotFoundError(std::filesystem::exists(path, error) ? "not a regular file"
                                                                      : "no such file");
    }
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) {
      return absl::NotFoundError("the file cannot be opened for reading");
    }
    return Reader(file);
  }

  /// Reads up to `size` bytes; fewer only at the end of the file.
  absl::StatusOr<std::size_t> Read(unsigned char* bytes, std::size_t size) {
    const int count = gzread(file_.get(), bytes, static_cast<unsigned>(size));
    if (count < 0) {
      return absl::InvalidArgumentError("the compressed data is corrupt");
    }
    return static_cast<std::size_t>(count);
  }

  [[nodiscard]] bool compressed() { return gzdirect(file_.get()) == 0; }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  explicit Reader(gzFile file) : file_(file) {}

  std::unique_ptr<gzFile_s, Close> file_;
};

absl::StatusOr<Shape> ReadExtents(Reader& reader) {
  std::array<unsigned char, kMagicBytes + kMaxExtents * kExtentBytes> header{};
  ADAMANT_ASSIGN_OR_RETURN(std::size_t count, reader.Read(header.data(), kMagicBytes));
  const std::size_t extents = header[3];
  if (count < kMagicBytes || header[0] != 0 || header[1] != 0 || header[2] != kUnsignedByte ||
      extents == 0 || extents > kMaxExtents) {
    return absl::InvalidArgumentError(
        "not an IDX file of unsigned bytes (its first bytes must be 0, 0, 8 and 1 to 4)");
  }
  unsigned char* const sizes = header.data() + kMagicBytes;
  ADAMANT_ASSIGN_OR_RETURN(count, reader.Read(sizes, extents * kExtentBytes));
  if (count < extents * kExtentBytes) {
    return absl::InvalidArgumentError("the file ends within its header");
  }
  Shape shape;
  for (std::size_t i = 0; i < extents; ++i) {
    std::int64_t extent = 0;
    for (std::size_t j = 0; j < kExtentBytes; ++j) {
      extent = extent * 256 + sizes[i * kExtentBytes + j];
    }
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

absl::StatusOr<Shape> ReadIdxExtents(const std::filesystem::path& path) {
  ADAMANT_ASSIGN_OR_RETURN(Reader reader, Reader::Open(path));
  ADAMANT_ASSIGN_OR_RETURN(Shape shape, ReadExtents(reader));
  const std::optional<std::int64_t> elements = ElementCount(shape);
  if (!elements || *elements == 0) {
    return absl::InvalidArgumentError("its header says " + ToString(shape) +
                                      (elements ? ", which is nothing" : ", which is too large"));
  }
  if (!reader.compressed()) {
    const std::uint64_t expected =
        kMagicBytes + kExtentBytes * shape.size() + static_cast<std::uint64_t>(*elements);
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (!error && size != expected) {
      return absl::InvalidArgumentError("the file has " + std::to_string(size) +
                                        " bytes, but its header (" + ToString(shape) + ") means " +
                                        std::to_string(expected));
    }
  }
  return shape;
}

absl::StatusOr<int> LargestLabel(const std::filesystem::path& path, std::int64_t labels) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 16;
  ADAMANT_ASSIGN_OR_RETURN(Reader reader, Reader::Open(path));
  ADAMANT_RETURN_IF_ERROR(ReadExtents(reader).status());
  std::vector<unsigned char> block(kBlockBytes);
  int largest = 0;
  for (std::int64_t left = labels; left > 0;) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::int64_t>(left, kBlockBytes));
    ADAMANT_ASSIGN_OR_RETURN(const std::size_t count, reader.Read(block.data(), wanted));
    if (count == 0) {
      return absl::InvalidArgumentError("the file ends after " + std::to_string(labels - left) +
                                        " of " + std::to_string(labels) + " labels");
    }
    largest = std::max<int>(
        largest,
        *std::max_element(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count)));
    left -= static_cast<std::int64_t>(count);
  }
  return largest;
}

}  // namespace adamant::job
