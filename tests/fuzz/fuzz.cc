#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "services/common/base/log.h"

namespace adamant::fuzz {
namespace {

constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kChecksumBytes = 8;

void AppendLittleEndian(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

// A seed that is refused begins nothing: writer and reader have come apart, or the target is out of
// date.
void WriteSeeds(const std::filesystem::path& folder) {
  std::size_t number = 0;
  for (const std::string& seed : Seeds()) {
    ADAMANT_CHECK(Try(seed), "refused: seed " + std::to_string(number));
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
  ADAMANT_CHECK(number > 0, "no seeds");
}

}  // namespace

std::string Join(const std::vector<std::string>& pieces) {
  std::string joined;
  for (const std::string& piece : pieces) {
    ADAMANT_CHECK(piece.size() < (std::size_t{1} << (8 * kLengthBytes)), "a piece is too long");
    AppendLittleEndian(joined, piece.size(), kLengthBytes);
    joined += piece;
  }
  return joined;
}

std::vector<std::string> Split(std::string_view input) {
  std::vector<std::string> pieces;
  while (input.size() >= kLengthBytes) {
    const std::size_t length = static_cast<unsigned char>(input[0]) |
                               static_cast<std::size_t>(static_cast<unsigned char>(input[1])) << 8;
    input.remove_prefix(kLengthBytes);
    pieces.emplace_back(input.substr(0, length));
    input.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::string Sealed(std::string_view content) {
  std::string sealed(content);
  AppendLittleEndian(sealed, Checksum(std::as_bytes(std::span(content))), kChecksumBytes);
  return sealed;
}

std::string Unsealed(std::string_view sealed) {
  ADAMANT_CHECK(sealed.size() >= kChecksumBytes, "there is no checksum");
  return std::string(sealed.substr(0, sealed.size() - kChecksumBytes));
}

ScratchFile::ScratchFile()
    : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(descriptor_)) {
  ADAMANT_CHECK(descriptor_ >= 0, "no file in memory");
}

ScratchFile::~ScratchFile() { close(descriptor_); }

void ScratchFile::Set(std::string_view content) {
  const bool set = ftruncate(descriptor_, static_cast<off_t>(content.size())) == 0 &&
                   pwrite(descriptor_, content.data(), content.size(), 0) ==
                       static_cast<ssize_t>(content.size());
  ADAMANT_CHECK(set, "cannot write to a file in memory");
}

}  // namespace adamant::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  adamant::InitLog("", adamant::LogLevel::kError);
  if (const char* folder = std::getenv("ADAMANT_FUZZ_SEEDS")) {
    adamant::fuzz::WriteSeeds(folder);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  adamant::fuzz::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
