#pragma once

#include <cstddef>
#include <string_view>

namespace adamant {

/// Returns the length of the UTF-8 sequence at the start of `text`, or 0 if it is none (also for
/// NUL).
/// Source: RFC 3629, section 4.
std::size_t Utf8Length(std::string_view text);

/// Returns true if `text` is UTF-8 without NULs.
bool IsUtf8(std::string_view text);

}  // namespace adamant
