#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "services/parameter_server/core/updates/messages.h"

namespace adamant::v1 {
class Operands;
}  // namespace adamant::v1

namespace adamant::parameter_server {

/// Reads a received payload (rpc::JoinPayload) front to back, in place. Threads: one at a time.
class FloatReader {
 public:
  explicit FloatReader(std::span<const std::byte> payload) : rest_(payload) {}

  /// False when fewer bytes are left.
  bool Read(std::uint64_t bytes, std::span<const std::byte>& out);

  /// Must start at a multiple of four bytes. False when fewer are left.
  bool ReadFloats(std::uint64_t elements, std::span<const float>& values);

  [[nodiscard]] bool AtEnd() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

/// Zeros that follow so many bytes in a payload, so that the next floats are aligned.
constexpr std::uint64_t PaddingAfter(std::uint64_t bytes) {
  return (sizeof(float) - bytes % sizeof(float)) % sizeof(float);
}

/// The operands that a header describes, from the payload. False when it is too short.
bool ReadOperands(const v1::Operands& header, FloatReader& reader, Operands& operands);

}  // namespace adamant::parameter_server
