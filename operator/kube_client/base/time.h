#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::kube {

using WallTime = std::chrono::system_clock::time_point;

/// The API's `Time`: "2026-01-31T12:00:00Z".
std::string FormatTime(WallTime time);

/// The API's `MicroTime`: "2026-01-31T12:00:00.000000Z".
std::string FormatMicroTime(WallTime time);

/// Either of them. Errors: InvalidArgument.
absl::StatusOr<WallTime> ParseTime(std::string_view text);

}  // namespace adamant::kube
