#include "operator/kube_client/base/time.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace adamant::kube {
namespace {

using std::chrono::floor;

// Between these a time in nanoseconds overflows nowhere.
constexpr int kFirstYear = 1700;
constexpr int kLastYear = 2250;

// "2026-01-31T12:00:00", in UTC.
std::string Format(std::chrono::sys_seconds time) {
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 32> text{};
  std::snprintf(text.data(),
                text.size(),
                "%04d-%02u-%02uT%02d:%02d:%02d",
                static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

// Reads `digits` decimal digits followed by `end` off the front of `text`.
bool Take(std::string_view& text, std::size_t digits, char end, int& number) {
  if (text.size() <= digits || text[digits] != end || text[0] == '-') {
    return false;
  }
  const auto [at, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (error != std::errc() || at != text.data() + digits) {
    return false;
  }
  text.remove_prefix(digits + 1);
  return true;
}

}  // namespace

std::string FormatTime(WallTime time) { return Format(floor<std::chrono::seconds>(time)) + "Z"; }

std::string FormatMicroTime(WallTime time) {
  const auto second = floor<std::chrono::seconds>(time);
  const auto micros = floor<std::chrono::microseconds>(time - second).count();
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), ".%06dZ", static_cast<int>(micros));
  return Format(second) + text.data();
}

absl::StatusOr<WallTime> ParseTime(std::string_view text) {
  std::string_view rest = text;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int micros = 0;
  bool whole = Take(rest, 4, '-', year) && Take(rest, 2, '-', month) && Take(rest, 2, 'T', day) &&
               Take(rest, 2, ':', hour) && Take(rest, 2, ':', minute);
  whole = whole && (Take(rest, 2, 'Z', second) ||
                    (Take(rest, 2, '.', second) && Take(rest, 6, 'Z', micros)));
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!whole || !rest.empty() || !date.ok() || year < kFirstYear || year > kLastYear || hour > 23 ||
      minute > 59 || second > 60) {
    return absl::InvalidArgumentError("'" + std::string(text) +
                                      "' is no time like 2026-01-31T12:00:00Z");
  }
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + std::chrono::microseconds(micros);
}

}  // namespace adamant::kube
