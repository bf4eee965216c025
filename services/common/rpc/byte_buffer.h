#pragma once

#include "absl/status/statusor.h"
#include "services/common/rpc/frame.h"

namespace grpc {
class ByteBuffer;
}  // namespace grpc

namespace adamant::rpc {

/// Makes `out` refer to the frame's bytes, which live until gRPC drops its last reference. Only the
/// header is copied.
void ToByteBuffer(OutgoingFrame frame, grpc::ByteBuffer& out);

/// A frame over the slices of `buffer`, in place. Errors: as DecodeFrame.
absl::StatusOr<IncomingFrame> FromByteBuffer(const grpc::ByteBuffer& buffer);

}  // namespace adamant::rpc
