#pragma once

#include <string_view>

namespace adamant::cli {

/// Prints "adamant: MESSAGE" to standard error.
void PrintError(std::string_view message);

}  // namespace adamant::cli
