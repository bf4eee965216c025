#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::local {

/// Named values of bytes: what a file of a saved checkpoint holds.
using Records = std::map<std::string, std::string>;

/// The content of such a file: format version, count, keys and values with their lengths, and at
/// the end the XXH3 of all that. Little-endian.
std::string EncodeRecords(const Records& records);

/// Errors: FailedPrecondition for another format version, naming both; DataLoss when the bytes are
/// damaged.
absl::StatusOr<Records> DecodeRecords(std::string_view bytes);

}  // namespace adamant::local
