#include "services/common/job/yaml/scalars.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace adamant::job {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// A suffix and what it multiplies with.
struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kK = 1000;
constexpr std::array kByteUnits = {
    Unit{"Ki", kKi},
    Unit{"Mi", kKi* kKi},
    Unit{"Gi", kKi* kKi* kKi},
    Unit{"Ti", kKi* kKi* kKi* kKi},
    Unit{"Pi", kKi* kKi* kKi* kKi* kKi},
    Unit{"k", kK},
    Unit{"M", kK* kK},
    Unit{"G", kK* kK* kK},
    Unit{"T", kK* kK* kK* kK},
    Unit{"P", kK* kK* kK* kK* kK},
    Unit{"", 1},
};

// Largest first; "ms" before "m" and "s", because the first suffix that fits is taken.
constexpr std::array kTimeUnits = {
    Unit{"h", 3'600'000'000'000},
    Unit{"ms", 1'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"us", 1'000},
    Unit{"ns", 1},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// The length of "12" or "1.5" at the start of `text`; 0 if there is none.
std::size_t DecimalLength(std::string_view text) {
  const auto digits_from = [&](std::size_t begin) {
    std::size_t end = begin;
    while (end < text.size() && IsDigit(text[end])) {
      ++end;
    }
    return end;
  };
  const std::size_t whole = digits_from(0);
  if (whole == 0 || whole == text.size() || text[whole] != '.') {
    return whole;
  }
  const std::size_t fraction = digits_from(whole + 1);
  return fraction == whole + 1 ? 0 : fraction;
}

/// `decimal` times `factor`, at most kLargest; nullopt if that is no whole number. `decimal` passed
/// DecimalLength.
std::optional<std::int64_t> Scale(std::string_view decimal, std::int64_t factor) {
  if (decimal.find('.') == std::string_view::npos) {
    std::int64_t whole = 0;
    const auto [end, error] =
        std::from_chars(decimal.data(), decimal.data() + decimal.size(), whole);
    return error != std::errc() || whole > kLargest / factor ? kLargest : whole * factor;
  }
  double value = 0;
  std::from_chars(decimal.data(), decimal.data() + decimal.size(), value);
  value *= static_cast<double>(factor);
  if (value >= static_cast<double>(kLargest)) {
    return kLargest;
  }
  if (value != std::floor(value)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) {
    return negative ? std::numeric_limits<std::int64_t>::min() : kLargest;
  }
  return value;
}

std::optional<double> ParseReal(std::string_view text) {
  const std::string_view number = text.substr(!text.empty() && text.front() == '-' ? 1 : 0);
  if (number.empty() || !(IsDigit(number.front()) || number.front() == '.')) {
    return std::nullopt;  // not "inf", "nan" or "-"
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    // Too large or too close to 0: the exponent's sign tells.
    const bool tiny = text.find("e-") != std::string_view::npos ||
                      text.find("E-") != std::string_view::npos || number.substr(0, 2) == "0.";
    return std::copysign(
        tiny ? std::numeric_limits<double>::denorm_min() : std::numeric_limits<double>::max(),
        text[0] == '-' ? -1 : 1);
  }
  return value;
}

std::optional<std::int64_t> ParseBytes(std::string_view text) {
  const std::size_t length = DecimalLength(text);
  if (length == 0) {
    return std::nullopt;
  }
  for (const Unit& unit : kByteUnits) {
    if (text.substr(length) == unit.suffix) {
      return Scale(text.substr(0, length), unit.factor);
    }
  }
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  std::int64_t total = 0;
  while (!text.empty()) {
    const std::size_t length = DecimalLength(text);
    const std::string_view rest = text.substr(length);
    const auto* const unit =
        std::find_if(kTimeUnits.begin(), kTimeUnits.end(), [&](const Unit& candidate) {
          return rest.substr(0, candidate.suffix.size()) == candidate.suffix;
        });
    if (length == 0 || unit == kTimeUnits.end()) {
      return std::nullopt;
    }
    const std::optional<std::int64_t> part = Scale(text.substr(0, length), unit->factor);
    if (!part) {
      return std::nullopt;
    }
    total = *part > kLargest - total ? kLargest : total + *part;
    text = rest.substr(unit->suffix.size());
  }
  return std::chrono::nanoseconds(total);
}

std::string FormatReal(double value) {
  constexpr double kSmallest = 1e-6;
  constexpr double kLargestFixed = 1e15;
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= kSmallest && size < kLargestFixed);
  std::array<char, 64> buffer{};
  char* const end = buffer.data() + buffer.size();
  const std::to_chars_result result =
      fixed ? std::to_chars(buffer.data(), end, value, std::chars_format::fixed)
            : std::to_chars(buffer.data(), end, value);
  return std::string(buffer.data(), result.ptr);
}

std::string FormatBytes(std::int64_t bytes) {
  const Unit* largest = &kByteUnits.back();
  for (const Unit& unit : kByteUnits) {
    if (unit.suffix.size() == 2 && bytes != 0 && bytes % unit.factor == 0) {
      largest = &unit;
    }
  }
  return std::to_string(bytes / largest->factor) + std::string(largest->suffix);
}

std::string FormatDuration(std::chrono::nanoseconds duration) {
  std::int64_t rest = duration.count();
  std::string text;
  // In the order of size; kTimeUnits has "ms" earlier.
  for (const std::string_view suffix : {"h", "m", "s", "ms", "us", "ns"}) {
    const auto* const unit = std::find_if(
        kTimeUnits.begin(), kTimeUnits.end(), [&](const Unit& u) { return u.suffix == suffix; });
    if (rest / unit->factor > 0) {
      text += std::to_string(rest / unit->factor) + std::string(suffix);
      rest %= unit->factor;
    }
  }
  return text.empty() ? "0s" : text;
}

}  // namespace adamant::job
