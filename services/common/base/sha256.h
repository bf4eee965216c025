#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace adamant {

/// SHA-256 of bytes that come piece by piece, to compare a download with what was published.
/// Threads: one thread at a time.
/// Source: FIPS 180-4.
class Sha256Sum {
 public:
  void Add(std::string_view bytes);

  /// Of all that was added so far: 64 hexadecimal digits in lower case.
  [[nodiscard]] std::string Hex() const;

 private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667,
                                         0xbb67ae85,
                                         0x3c6ef372,
                                         0xa54ff53a,
                                         0x510e527f,
                                         0x9b05688c,
                                         0x1f83d9ab,
                                         0x5be0cd19};
  std::string rest_;  // less than a block
  std::uint64_t bytes_ = 0;
};

/// SHA-256 of `content`. Threads: any.
std::string Sha256(std::string_view content);

}  // namespace adamant
