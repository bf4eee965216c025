#pragma once

#include <cstdint>

/// Versions that both ends of a stream name first; another is refused, naming both. An incompatible
/// change raises one. What is stored has its version where it is written: docs/formats.md has all.
namespace adamant::protocol {

inline constexpr std::uint32_t kControlFormatVersion = 1;   ///< members and their controller
inline constexpr std::uint32_t kWorkFormatVersion = 1;      ///< workers and data servers
inline constexpr std::uint32_t kExchangeFormatVersion = 1;  ///< workers and parameter servers
inline constexpr std::uint32_t kPeerFormatVersion = 1;      ///< parameter servers among themselves

}  // namespace adamant::protocol
