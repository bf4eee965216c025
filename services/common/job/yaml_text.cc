#include "services/common/job/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace adamant::job {
namespace {

/// Whether YAML takes the word for true, false or nothing. Source: YAML 1.1, types bool and null.
bool IsReserved(std::string_view text) {
  constexpr std::array<std::string_view, 9> kWords = {
      "true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

bool IsPlain(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
           c == '/';
  };
  return !text.empty() &&
         (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '/') &&
         std::all_of(text.begin(), text.end(), is_word) && !IsReserved(text);
}

}  // namespace

std::string YamlText(std::string_view text) {
  if (IsPlain(text)) {
    return std::string(text);
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 0xf];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace adamant::job
