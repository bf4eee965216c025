#pragma once

#include <cstdint>

/// What both ends of a stream name first; another is refused, naming both. An incompatible change
/// raises it. What is stored has its version where it is written; docs/formats.md lists all.
namespace adamant::protocol {

inline constexpr std::uint32_t kControlFormatVersion = 1;   ///< members and their controller
inline constexpr std::uint32_t kWorkFormatVersion = 1;      ///< workers and data servers
inline constexpr std::uint32_t kExchangeFormatVersion = 1;  ///< workers and parameter servers
inline constexpr std::uint32_t kPeerFormatVersion = 1;      ///< parameter servers among themselves

}  // namespace adamant::protocol
