#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::kube {

/// The bytes that `text` stands for in base64 (RFC 4648, section 4); white space between the
/// characters is passed over. Errors: InvalidArgument.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

/// `bytes` in base64, with padding and without line ends.
std::string EncodeBase64(std::string_view bytes);

}  // namespace adamant::kube
