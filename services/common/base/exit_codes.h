#pragma once

namespace adamant {

/// Exit code of a service whose flags, manifest or data are wrong: another start would end the same
/// way.
inline constexpr int kBadConfiguration = 2;

}  // namespace adamant
