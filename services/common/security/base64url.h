#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace adamant::security {

/// The bytes that `text` stands for in base64url (RFC 4648, section 5) without padding, as in
/// tokens; nothing where it is not what an encoder would write. Threads: any.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace adamant::security
