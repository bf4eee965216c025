#pragma once

#include <string_view>

namespace adamant {

/// Prints `condition`, `file`, `line` and `message` to standard error and aborts.
[[noreturn]] void CheckFailed(std::string_view condition,
                              std::string_view file,
                              int line,
                              std::string_view message);

}  // namespace adamant

/// Aborts when `condition` is false: for broken invariants of ours that no caller can act on. Stays
/// on in release builds.
#define ADAMANT_CHECK(condition, message)                                \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::adamant::CheckFailed(#condition, __FILE__, __LINE__, (message)); \
    }                                                                    \
  } while (false)
