#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace adamant {

/// A count for people, of what takes an s: "1 worker", "2 workers".
std::string Counted(std::uint64_t count, std::string_view what);

}  // namespace adamant
