#include "services/common/rpc/frame.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace adamant::rpc {

IncomingFrame::IncomingFrame(std::string header,
                             std::vector<std::span<const std::byte>> chunks,
                             std::shared_ptr<const void> owner)
    : header_(std::move(header)), chunks_(std::move(chunks)), owner_(std::move(owner)) {
  for (const auto& chunk : chunks_) {
    payload_bytes_ += chunk.size();
  }
}

PayloadReader::PayloadReader(const IncomingFrame& frame)
    : frame_(frame), remaining_(frame.payload_bytes()) {}

absl::Status PayloadReader::Read(std::span<std::byte> out) {
  if (out.size() > remaining_) {
    return absl::OutOfRangeError("payload too short: " + std::to_string(out.size()) +
                                 " bytes wanted, " + std::to_string(remaining_) + " left");
  }
  remaining_ -= out.size();
  while (!out.empty()) {
    const auto rest = frame_.chunks()[chunk_].subspan(offset_);
    const std::size_t bytes = std::min(rest.size(), out.size());
    if (bytes > 0) {
      std::memcpy(out.data(), rest.data(), bytes);
    }
    out = out.subspan(bytes);
    offset_ += bytes;
    if (bytes == rest.size()) {
      ++chunk_;
      offset_ = 0;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> PayloadReader::View(std::uint64_t bytes,
                                                               std::vector<std::byte>& scratch) {
  if (bytes > 0 && bytes <= remaining_) {
    const auto rest = frame_.chunks()[chunk_].subspan(offset_);
    const bool aligned = reinterpret_cast<std::uintptr_t>(rest.data()) % alignof(float) == 0;
    if (aligned && rest.size() >= bytes) {
      remaining_ -= bytes;
      offset_ += bytes;
      if (bytes == rest.size()) {
        ++chunk_;
        offset_ = 0;
      }
      return rest.first(bytes);
    }
  }
  if (bytes <= remaining_ && scratch.size() < bytes) {
    scratch.resize(bytes);
  }
  // Read refuses what exceeds the payload before `scratch` matters.
  const std::span<std::byte> out(scratch.data(), bytes);
  if (absl::Status status = Read(out); !status.ok()) {
    return status;
  }
  return std::span<const std::byte>(out);
}

LentBytes JoinPayload(IncomingFrame frame) {
  const std::uint64_t bytes = frame.payload_bytes();
  if (frame.chunks().size() == 1 &&
      reinterpret_cast<std::uintptr_t>(frame.chunks()[0].data()) % alignof(float) == 0) {
    const auto owner = std::make_shared<const IncomingFrame>(std::move(frame));
    return {owner->chunks()[0], owner};
  }
  const auto joined = std::make_shared_for_overwrite<std::byte[]>(bytes);
  std::byte* out = joined.get();
  for (const auto& chunk : frame.chunks()) {
    out = std::copy(chunk.begin(), chunk.end(), out);
  }
  return {std::span(joined.get(), bytes), joined};
}

}  // namespace adamant::rpc
