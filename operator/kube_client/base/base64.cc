#include "operator/kube_client/base/base64.h"

#include <cstddef>
#include <cstdint>

namespace adamant::kube {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

absl::StatusOr<std::string> DecodeBase64(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  int digits = 0;  // in `group`
  int padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      continue;
    }
    const std::size_t digit = kAlphabet.find(c);
    if (c == '=' && digits + padding < 4 && digits >= 2) {
      ++padding;
      continue;
    }
    if (digit == std::string_view::npos || padding > 0) {
      return absl::InvalidArgumentError("not base64");
    }
    group = group << 6 | static_cast<std::uint32_t>(digit);
    if (++digits == 4) {
      bytes +=
          {static_cast<char>(group >> 16), static_cast<char>(group >> 8), static_cast<char>(group)};
      group = 0;
      digits = 0;
    }
  }
  if (digits == 0) {
    return bytes;
  }
  if (digits + padding != 4) {
    return absl::InvalidArgumentError("not base64: it is cut off");
  }
  group <<= 6 * padding;
  for (int i = 0; i < digits - 1; ++i) {
    bytes += static_cast<char>(group >> (16 - 8 * i));
  }
  return bytes;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (; !bytes.empty(); bytes.remove_prefix(bytes.size() < 3 ? bytes.size() : 3)) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= bytes.size() ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

}  // namespace adamant::kube
