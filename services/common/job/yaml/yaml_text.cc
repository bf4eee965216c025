#include "services/common/job/yaml/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <variant>

#include "services/common/job/yaml/scalars.h"

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

std::string ScalarText(const Scalar& value, ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return std::get<bool>(value) ? "true" : "false";
    case ScalarType::kInteger:
      return std::to_string(std::get<std::int64_t>(value));
    case ScalarType::kReal:
      return FormatReal(std::get<double>(value));
    case ScalarType::kBytes:
      return FormatBytes(std::get<std::int64_t>(value));
    case ScalarType::kDuration:
      return FormatDuration(std::get<std::chrono::nanoseconds>(value));
    case ScalarType::kText:
      return YamlText(std::get<std::string>(value));
    case ScalarType::kEnum:
      break;
  }
  return EnumText(*std::get<const google::protobuf::EnumValueDescriptor*>(value));
}

}  // namespace adamant::job
