#include "services/common/security/base64url.h"

#include <cstdint>

namespace adamant::security {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count));
      bits &= (1U << count) - 1;
    }
  }
  const bool is_whole = count < 6 && bits == 0;  // no lone digit, no bits that mean nothing
  return is_whole ? std::optional<std::string>(std::move(bytes)) : std::nullopt;
}

}  // namespace adamant::security
