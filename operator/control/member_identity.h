#pragma once

#include <cstdint>
#include <string>

namespace adamant::security {
struct PeerIdentity;
}  // namespace adamant::security

namespace adamant::v1 {
class Join;
}  // namespace adamant::v1

namespace adamant::control {

/// Fields in which a member's Join may say another thing than its certificate.
enum class Mismatch : std::uint8_t { kNone, kJob, kRole, kSlot, kGeneration };

/// Returns the first field of `join` that is not what the certificate says.
Mismatch Compare(const v1::Join& join, const security::PeerIdentity& identity);

/// Returns the name of a field, for who is refused: "job".
std::string FieldName(Mismatch mismatch);

}  // namespace adamant::control
