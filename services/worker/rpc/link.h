#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/frame.h"

namespace adamant::worker {

/// Room in a message for the header, beside the payload.
constexpr std::uint64_t kHeaderRoom = std::uint64_t{1} << 20;

struct LinkOptions {
  std::string address;  ///< host:port
  std::string method;
  std::string job;  ///< that it is for: rpc::OpenFrameStream
  std::shared_ptr<const rpc::ChannelSecurity> security = {};  ///< null: plain text
  std::uint64_t max_message_bytes = 0;                        ///< received
  std::string hello;       ///< header of the first frame of every stream
  std::uint64_t seed = 0;  ///< of the waits between connections
};

/// Handlers of what happens on a link; called on its reading thread.
struct LinkHandlers {
  /// The answer to the hello. An error ends the stream, and the link tries again.
  std::function<absl::Status(const rpc::IncomingFrame&)> on_hello;
  std::function<void(bool connected)> on_change;

  /// Any other frame. An error ends the stream, and the link tries again.
  std::function<absl::Status(rpc::IncomingFrame)> on_frame;
};

/// A stream of frames to one server that is opened again, with backoff, whenever it breaks.
/// Threads: any; has one that reads and one that writes. The destructor stops both: handlers must
///   return soon then.
class Link {
 public:
  Link(LinkOptions options, LinkHandlers handlers);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Queues a frame; dropped while not connected, and when the stream breaks before it is sent.
  void Send(rpc::OutgoingFrame frame);

  /// Returns whether everything queued has been taken by the transport.
  [[nodiscard]] bool Idle();

  /// Ends the stream and keeps it ended; calls no handler after on_change(false).
  void Stop();

 private:
  void ReadLoop();
  void WriteLoop();
  absl::Status ServeStream(rpc::FrameStream& stream);
  void SetConnected(bool connected);

  // Constant after construction.
  const LinkOptions options_;
  const LinkHandlers handlers_;

  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<rpc::FrameStream> stream_ ABSL_GUARDED_BY(mutex_);
  std::deque<rpc::OutgoingFrame> outbox_ ABSL_GUARDED_BY(mutex_);
  bool connected_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point connected_at_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::jthread reader_;
  std::jthread writer_;
};

}  // namespace adamant::worker
