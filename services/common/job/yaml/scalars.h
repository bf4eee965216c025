#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace adamant::job {

// The notations of single values. Parsers return nullopt for anything else than the notation; what
// exceeds the type comes out as its largest (or smallest) value, and what is closer to 0 than the
// type can tell as the closest, so that range checks see it.

/// "42", "-1".
std::optional<std::int64_t> ParseInteger(std::string_view text);

/// "0.5", "-1e-3", "2"; never infinite names or NaN.
std::optional<double> ParseReal(std::string_view text);

/// A Kubernetes quantity of whole bytes: "4096", "64Mi", "1.5Gi", "2G".
std::optional<std::int64_t> ParseBytes(std::string_view text);

/// A duration as Go and Kubernetes write it: "1h30m", "5s", "250ms", "1.5s", "0s".
std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// The inverse: the shortest text that parses to the same value.
std::string FormatReal(double value);
std::string FormatBytes(std::int64_t bytes);
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace adamant::job
