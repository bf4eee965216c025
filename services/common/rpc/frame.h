#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::security {
struct PeerIdentity;
}  // namespace adamant::security

namespace adamant::rpc {

struct ChannelSecurity;

/// Bytes lent to a frame: `owner` keeps `bytes` valid until the transport has sent them. They must
/// not change meanwhile.
struct LentBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// A message to send: a small serialized header and payload that is never copied or parsed by us.
struct OutgoingFrame {
  std::string header;
  std::vector<LentBytes> payload;
};

/// A received message. `chunks` are the payload in order, in place as the transport received them
/// (cut anywhere, so a float may straddle two); they live as long as the frame. Header and sizes
/// are from outside: check them. Movable, not copyable. Threads: one at a time.
class IncomingFrame {
 public:
  [[nodiscard]] std::string_view header() const { return header_; }
  [[nodiscard]] const std::vector<std::span<const std::byte>>& chunks() const { return chunks_; }
  [[nodiscard]] std::uint64_t payload_bytes() const { return payload_bytes_; }

  /// For transports: takes over what the views point into.
  IncomingFrame(std::string header,
                std::vector<std::span<const std::byte>> chunks,
                std::shared_ptr<const void> owner);
  IncomingFrame() = default;
  IncomingFrame(IncomingFrame&&) = default;
  IncomingFrame& operator=(IncomingFrame&&) = default;

 private:
  std::string header_;
  std::vector<std::span<const std::byte>> chunks_;
  std::uint64_t payload_bytes_ = 0;
  std::shared_ptr<const void> owner_;
};

/// Reads a frame's payload front to back, across chunk borders.
/// Threads: one.
class PayloadReader {
 public:
  explicit PayloadReader(const IncomingFrame& frame);  // the frame must outlive this

  [[nodiscard]] std::uint64_t remaining() const { return remaining_; }

  /// Copies the next bytes into `out`. OutOfRange when fewer remain; nothing is consumed then.
  absl::Status Read(std::span<std::byte> out);

  /// The next `bytes` as one contiguous piece: in place where one chunk holds them at float
  /// alignment, else copied into `scratch`, which is grown as needed. OutOfRange when fewer remain.
  absl::StatusOr<std::span<const std::byte>> View(std::uint64_t bytes,
                                                  std::vector<std::byte>& scratch);

 private:
  const IncomingFrame& frame_;
  std::size_t chunk_ = 0;
  std::size_t offset_ = 0;
  std::uint64_t remaining_ = 0;
};

/// The whole payload as one piece at float alignment: in place where it is one already, else copied
/// once, and what was received is let go.
LentBytes JoinPayload(IncomingFrame frame);

/// A bidirectional stream of frames.
/// Threads: one reader and one writer at a time may work concurrently; Cancel may be called from
/// any thread.
class FrameStream {
 public:
  virtual ~FrameStream() = default;

  /// Waits for the next frame. Errors: OutOfRange at the orderly end of the stream; DataLoss for a
  /// frame whose format version or lengths are wrong; Unavailable, Cancelled, … as the transport
  /// says.
  virtual absl::StatusOr<IncomingFrame> Read() = 0;

  /// Sends a frame; returns when the transport has taken it (backpressure). Errors: Unavailable
  /// when the stream is broken.
  virtual absl::Status Write(OutgoingFrame frame) = 0;

  /// Client: no more frames will be written. Server: no effect.
  virtual void CloseWrites() = 0;

  /// Breaks the stream; pending and later calls fail.
  virtual void Cancel() = 0;

  /// Returns whether the stream is known to be broken. Server: also by the client's Cancel or a
  /// lost connection, for the thread that reads, while it does something else. Client: by Cancel.
  [[nodiscard]] virtual bool Cancelled() = 0;

  /// Server: returns who is at the other end, as long as this is there; null: nobody knows, as
  /// there is no TLS. Client: null.
  [[nodiscard]] virtual const security::PeerIdentity* peer() const { return nullptr; }
};

/// Timeouts by which a silent connection is given up; the default suits peers that may be busy.
struct Liveness {
  std::chrono::milliseconds connect{20'000};    ///< to make the connection
  std::chrono::milliseconds ask_after{20'000};  ///< without a word from the peer: ask
  std::chrono::milliseconds give_up_after{
      10'000};  ///< without an answer, or with bytes unacknowledged
};

/// Opens a stream of frames to `method` ("/adamant.v1.ParameterServer/Exchange") at `address`
/// ("host:port"). The connection is made lazily: an unreachable server shows as Unavailable from
/// Read or Write. `max_message_bytes` bounds what is received. `job`: that the stream is for; a
/// job's servers refuse those for another, and for none. `security`: null: plain text; not kept.
std::unique_ptr<FrameStream> OpenFrameStream(const std::string& address,
                                             const std::string& method,
                                             std::uint64_t max_message_bytes,
                                             const Liveness& liveness = {},
                                             const std::string& job = "",
                                             const ChannelSecurity* security = nullptr);

/// Serves one stream: called on a thread of its own, the stream ends when it returns (with the
/// status returned).
using FrameHandler = std::function<absl::Status(FrameStream&)>;

}  // namespace adamant::rpc
