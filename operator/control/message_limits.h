#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace adamant::v1 {
class MemberMessage;
}  // namespace adamant::v1

namespace adamant::control {

/// The most bytes of a member's message of any kind: what tells of each of the most buckets that a
/// job can have.
inline constexpr std::uint64_t kMostMessageBytes = std::uint64_t{16} << 20;

/// InvalidArgument if a message is larger than what its kind needs.
absl::Status CheckBytes(const v1::MemberMessage& message);

}  // namespace adamant::control
