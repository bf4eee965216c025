#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/rpc/frame.h"

namespace adamant::rpc {

/// Returns what a transport sends before a frame's payload: 'A' 'D' 'M', format version 1, the
/// length of the header (32 bits, little-endian), the header.
std::string EncodeFront(std::string_view header);

/// Takes a received message apart; `pieces` are its bytes in order, cut anywhere, and `owner` keeps
/// them valid.
/// Errors: DataLoss when the message is no frame, of another version, or shorter than it says.
absl::StatusOr<IncomingFrame> DecodeFrame(std::vector<std::span<const std::byte>> pieces,
                                          std::shared_ptr<const void> owner);

}  // namespace adamant::rpc
