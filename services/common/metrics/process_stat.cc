#include "services/common/metrics/process_stat.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace adamant::metrics {
namespace {

// Takes the first word off.
std::string_view TakeWord(std::string_view& text) {
  constexpr std::string_view kSpace = " \n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kSpace));
  text.remove_prefix(word.size());
  return word;
}

bool ReadNumber(std::string_view word, std::uint64_t& number) {
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

// Fields have the numbers that proc(5) gives them. The second is the program's name, in which there
// may be spaces and parentheses.
std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  constexpr std::size_t kFirst = 3;
  constexpr std::size_t kUser = 14;
  constexpr std::size_t kSystem = 15;
  constexpr std::size_t kStart = 22;
  constexpr std::size_t kVirtual = 23;
  constexpr std::size_t kResident = 24;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(name_end + 1);
  std::array<std::string_view, kResident + 1> fields;
  for (std::size_t field = kFirst; field <= kResident; ++field) {
    fields[field] = TakeWord(text);
  }
  ProcessStat stat;
  std::uint64_t system = 0;
  if (!ReadNumber(fields[kUser], stat.processor_ticks) || !ReadNumber(fields[kSystem], system) ||
      !ReadNumber(fields[kStart], stat.start_ticks) ||
      !ReadNumber(fields[kVirtual], stat.virtual_bytes) ||
      !ReadNumber(fields[kResident], stat.resident_pages)) {
    return std::nullopt;
  }
  stat.processor_ticks += system;
  return stat;
}

std::optional<std::uint64_t> ParseBootTime(std::string_view text) {
  constexpr std::string_view kName = "\nbtime ";
  const std::size_t begin = text.find(kName);
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  text.remove_prefix(begin + kName.size());
  std::uint64_t seconds = 0;
  return ReadNumber(TakeWord(text), seconds) ? std::optional(seconds) : std::nullopt;
}

}  // namespace adamant::metrics
