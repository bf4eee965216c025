#include "services/common/rpc/wire.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace adamant::rpc {
namespace {

constexpr char kFormatVersion = 1;
constexpr std::array<char, 4> kMagic = {'A', 'D', 'M', kFormatVersion};
constexpr std::size_t kPrefixBytes = 8;

using Pieces = std::vector<std::span<const std::byte>>;

// Moves the next out.size() bytes from the front of `pieces`; false when there are fewer.
bool Take(Pieces& pieces, std::size_t& first, std::span<char> out) {
  while (!out.empty()) {
    if (first == pieces.size()) {
      return false;
    }
    std::span<const std::byte>& piece = pieces[first];
    const std::size_t bytes = std::min(piece.size(), out.size());
    if (bytes > 0) {
      std::memcpy(out.data(), piece.data(), bytes);
    }
    out = out.subspan(bytes);
    piece = piece.subspan(bytes);
    if (piece.empty()) {
      ++first;
    }
  }
  return true;
}

std::uint64_t TotalBytes(const Pieces& pieces) {
  std::uint64_t bytes = 0;
  for (const auto& piece : pieces) {
    bytes += piece.size();
  }
  return bytes;
}

std::uint32_t LittleEndian32(const char* bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

}  // namespace

std::string EncodeFront(std::string_view header) {
  std::string front;
  front.reserve(kPrefixBytes + header.size());
  front.append(kMagic.data(), kMagic.size());
  for (int shift = 0; shift < 32; shift += 8) {
    front.push_back(static_cast<char>(header.size() >> shift & 0xff));
  }
  front.append(header);
  return front;
}

absl::StatusOr<IncomingFrame> DecodeFrame(Pieces pieces, std::shared_ptr<const void> owner) {
  const std::uint64_t total = TotalBytes(pieces);
  std::size_t first = 0;
  std::array<char, kPrefixBytes> prefix{};
  if (!Take(pieces, first, prefix) || std::memcmp(prefix.data(), kMagic.data(), 3) != 0) {
    return absl::DataLossError("not a frame: the peer speaks another protocol");
  }
  if (prefix[3] != kFormatVersion) {
    return absl::DataLossError("frame format version " + std::to_string(prefix[3]) +
                               ", this program speaks version " + std::to_string(kFormatVersion) +
                               ": run the same release everywhere");
  }
  const std::uint32_t header_bytes = LittleEndian32(prefix.data() + kMagic.size());
  if (header_bytes > total - kPrefixBytes) {
    return absl::DataLossError("truncated frame: header of " + std::to_string(header_bytes) +
                               " bytes in a message of " + std::to_string(total));
  }
  std::string header(header_bytes, '\0');
  Take(pieces, first, header);
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(first));
  std::erase_if(pieces, [](const auto& piece) { return piece.empty(); });
  return IncomingFrame(std::move(header), std::move(pieces), std::move(owner));
}

}  // namespace adamant::rpc
