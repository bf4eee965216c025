#pragma once

#include <cstdint>
#include <string>

namespace adamant::cli {

/// Text formatted as printf does, cut after 511 bytes.
__attribute__((format(printf, 1, 2))) std::string Text(const char* format, ...);

/// For "%llu", whatever std::uint64_t is.
inline unsigned long long Wide(std::uint64_t value) { return value; }

/// A message that is longer than four lines of a terminal has a line for each of its parts, which
/// "; " divides: a cause, what to do, what else there is.
std::string InLines(std::string message);

/// "1m20s", "45s", "2h03m"; tenths below 10 s.
std::string FormatSeconds(double seconds);

/// FormatSeconds, but with milliseconds below a second: "51ms".
std::string FormatLatency(double seconds);

}  // namespace adamant::cli
