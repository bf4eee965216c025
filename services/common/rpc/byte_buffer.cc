#include "services/common/rpc/byte_buffer.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <utility>
#include <vector>

#include "services/common/rpc/wire.h"

namespace adamant::rpc {
namespace {

using Owner = std::shared_ptr<const void>;

void DropOwner(void* owner) { delete static_cast<Owner*>(owner); }

}  // namespace

void ToByteBuffer(OutgoingFrame frame, grpc::ByteBuffer& out) {
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + frame.payload.size());
  slices.emplace_back(EncodeFront(frame.header));
  for (LentBytes& piece : frame.payload) {
    if (!piece.bytes.empty()) {
      // gRPC's interface takes void*, but it only reads from slices that it sends.
      void* bytes = const_cast<std::byte*>(piece.bytes.data());
      slices.emplace_back(bytes, piece.bytes.size(), DropOwner, new Owner(std::move(piece.owner)));
    }
  }
  out = grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<IncomingFrame> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (const grpc::Status status = buffer.Dump(slices.get()); !status.ok()) {
    return absl::DataLossError("message cannot be read: " + status.error_message());
  }
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(slices->size());
  for (const grpc::Slice& slice : *slices) {
    pieces.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
  return DecodeFrame(std::move(pieces), std::move(slices));
}

}  // namespace adamant::rpc
