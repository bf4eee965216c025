#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Manifests of checkpoints: JSON objects that name their format version and guard themselves. All
// numbers in them are counts.
namespace adamant::local {

/// A number of 64 bits that is no count, as text: JSON's readers often keep 53 bits. ReadHex is the
/// inverse; it throws nlohmann::json::exception where there is no text.
std::string HexText(std::uint64_t value);
std::uint64_t ReadHex(const nlohmann::ordered_json& json);

/// The object with "checksum" over all the rest, as the text of a file. It has "format_version".
std::string SealJson(nlohmann::ordered_json json);

/// The object of such a text, without "checksum".
/// Errors: FailedPrecondition for another format version, naming both; DataLoss when it is damaged.
absl::StatusOr<nlohmann::ordered_json> OpenJson(std::string_view text,
                                                std::uint64_t format_version);

/// DataLoss: what is wrong with the text of a manifest.
absl::Status DamagedManifest(const std::string& why);

}  // namespace adamant::local
