#pragma once

#include <string>
#include <string_view>

namespace adamant::dataset {

/// SHA-256 of `content` as 64 hexadecimal digits, to compare a download with what was published.
/// Source: FIPS 180-4. Threads: any.
std::string Sha256(std::string_view content);

}  // namespace adamant::dataset
