#include "services/common/dataset/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/system/files.h"

namespace adamant::dataset {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::uint64_t kMaxExpansion = 1032;
constexpr int kGzipWindow = 15 + 16;  // zlib: 32 KiB window, gzip wrapper

}  // namespace

struct InputFile::Impl {
  std::string path;
  int descriptor = -1;
  std::uint64_t file_bytes = 0;
  std::uint64_t offset = 0;       // of the content
  std::uint64_t file_offset = 0;  // read from the file
  bool compressed = false;
  bool in_member = false;  // between the first byte of a gzip member and its end
  z_stream stream = {};
  std::vector<std::uint8_t> block;  // compressed bytes; stream.next_in points into it

  ~Impl() {
    if (compressed) {
      inflateEnd(&stream);
    }
    if (descriptor >= 0) {
      close(descriptor);
    }
  }

  absl::StatusOr<std::size_t> ReadRaw(std::span<std::uint8_t> out) {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t count = read(descriptor, out.data() + filled, out.size() - filled);
      if (count < 0) {
        if (errno == EINTR) {
          continue;
        }
        return SystemError(errno, "cannot read", path);
      }
      if (count == 0) {
        break;
      }
      filled += static_cast<std::size_t>(count);
    }
    file_offset += filled;
    return filled;
  }

  // Makes sure that the stream has input; false at the end of the file.
  absl::StatusOr<bool> Refill() {
    if (stream.avail_in == 0) {
      const absl::StatusOr<std::size_t> count = ReadRaw(block);
      if (!count.ok()) {
        return count.status();
      }
      stream.next_in = block.data();
      stream.avail_in = static_cast<uInt>(*count);
    }
    return stream.avail_in > 0;
  }

  [[nodiscard]] absl::Status Damaged(const std::string& what) const {
    return absl::DataLossError(path + ": offset " + std::to_string(file_offset - stream.avail_in) +
                               " of the compressed file: " + what);
  }

  absl::StatusOr<std::size_t> Inflate(std::span<std::uint8_t> out) {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const absl::StatusOr<bool> more = Refill();
      if (!more.ok()) {
        return more.status();
      }
      if (!*more) {
        if (in_member) {
          return Damaged("expected more of the gzip stream, found the end of the file (truncated)");
        }
        break;
      }
      if (!in_member) {
        inflateReset(&stream);
        in_member = true;
      }
      const std::size_t room = std::min<std::size_t>(out.size() - filled, 1u << 30);
      stream.next_out = out.data() + filled;
      stream.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream, Z_NO_FLUSH);
      filled += room - stream.avail_out;
      if (result == Z_STREAM_END) {
        in_member = false;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Damaged(std::string("expected a valid gzip stream, found ") +
                       (stream.msg != nullptr ? stream.msg : "damaged data"));
      }
    }
    return filled;
  }
};

InputFile::InputFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile& InputFile::operator=(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  // Without waiting for a writer: a FIFO is refused below.
  impl->descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (impl->descriptor < 0) {
    return SystemError(errno, "cannot open", path);
  }
  struct stat info = {};
  if (fstat(impl->descriptor, &info) != 0) {
    return SystemError(errno, "cannot read", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(path + ": expected a regular file");
  }
  impl->file_bytes = static_cast<std::uint64_t>(info.st_size);
  std::uint8_t magic[2] = {};
  const bool two_bytes = pread(impl->descriptor, magic, 2, 0) == 2;
  if (two_bytes && magic[0] == 0x1f && magic[1] == 0x8b) {
    impl->block.resize(kBlockBytes);
    if (inflateInit2(&impl->stream, kGzipWindow) != Z_OK) {
      return absl::ResourceExhaustedError(path + ": no memory to inflate it");
    }
    impl->compressed = true;
  }
  return InputFile(std::move(impl));
}

absl::StatusOr<std::size_t> InputFile::Read(std::span<std::uint8_t> out) {
  absl::StatusOr<std::size_t> count = impl_->compressed ? impl_->Inflate(out) : impl_->ReadRaw(out);
  if (count.ok()) {
    impl_->offset += *count;
  }
  return count;
}

absl::StatusOr<std::size_t> InputFile::ReadAt(std::uint64_t offset,
                                              std::span<std::uint8_t> out) const {
  ADAMANT_CHECK(!impl_->compressed, "a gzip stream is read front to back");
  return ReadFileAt(offset, out);
}

absl::StatusOr<std::size_t> InputFile::ReadFileAt(std::uint64_t offset,
                                                  std::span<std::uint8_t> out) const {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = pread(impl_->descriptor,
                                out.data() + filled,
                                out.size() - filled,
                                static_cast<off_t>(offset + filled));
    if (count < 0 && errno != EINTR) {
      return SystemError(errno, "cannot read", impl_->path);
    }
    if (count == 0) {
      break;
    }
    filled += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  return filled;
}

const std::string& InputFile::path() const { return impl_->path; }
bool InputFile::compressed() const { return impl_->compressed; }
std::uint64_t InputFile::file_bytes() const { return impl_->file_bytes; }
std::uint64_t InputFile::offset() const { return impl_->offset; }

std::uint64_t InputFile::max_content_bytes() const {
  if (!impl_->compressed) {
    return impl_->file_bytes;
  }
  return impl_->file_bytes > std::numeric_limits<std::uint64_t>::max() / kMaxExpansion
             ? std::numeric_limits<std::uint64_t>::max()
             : impl_->file_bytes * kMaxExpansion;
}

std::string Gzip(std::span<const std::uint8_t> content) {
  z_stream stream = {};
  // Level 6 and the default memory: the usual trade. No header is given: no name, no time.
  const int started = deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  ADAMANT_CHECK(started == Z_OK, "zlib cannot start");
  std::string out;
  std::vector<std::uint8_t> block(kBlockBytes);
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (stream.avail_in == 0 && !content.empty()) {
      const std::size_t piece = std::min<std::size_t>(content.size(), 1u << 30);
      // zlib does not write through next_in, but its type is not const.
      stream.next_in = const_cast<std::uint8_t*>(content.data());
      stream.avail_in = static_cast<uInt>(piece);
      content = content.subspan(piece);
    }
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    result = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    ADAMANT_CHECK(result == Z_OK || result == Z_STREAM_END, "zlib cannot deflate");
    out.append(reinterpret_cast<const char*>(block.data()), block.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace adamant::dataset
