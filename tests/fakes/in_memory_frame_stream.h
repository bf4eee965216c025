#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "services/common/rpc/frame.h"

namespace adamant::fakes {

struct InMemoryLinkOptions {
  std::uint64_t max_message_bytes = std::uint64_t{16} << 20;
  std::uint64_t window_bytes = std::uint64_t{1} << 20;  ///< a writer waits while more is unread
  std::size_t chunk_bytes = 4093;  ///< received payloads are cut here: odd, so that floats straddle
};

/// A frame stream within the process, with the wire format of the real ones. Threads: as
/// FrameStream.
class InMemoryLink {
 public:
  explicit InMemoryLink(InMemoryLinkOptions options = {});

  /// The two ends; each may be taken once. They may outlive the link.
  std::unique_ptr<rpc::FrameStream> TakeClient() { return std::move(client_); }
  std::unique_ptr<rpc::FrameStream> TakeServer() { return std::move(server_); }

  /// Lets the server receive these bytes as a message.
  void SendRaw(std::string message);

  /// What the client reads once it has read all that was written: the handler's status.
  void Finish(const absl::Status& status);

 private:
  struct State;
  class End;
  std::shared_ptr<State> state_;
  std::unique_ptr<rpc::FrameStream> client_;
  std::unique_ptr<rpc::FrameStream> server_;
};

/// The client's end and the server's.
std::pair<std::unique_ptr<rpc::FrameStream>, std::unique_ptr<rpc::FrameStream>>
MakeInMemoryFrameStreamPair(InMemoryLinkOptions options = {});

}  // namespace adamant::fakes
