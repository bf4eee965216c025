#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/frame.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/rpc/peers/peer_metrics.h"

namespace adamant::parameter_server {

/// One of the ways to a peer: keeps a stream of "/adamant.v1.Replication/Deliver" open, with pauses
/// after failures, and sends in message batches what is queued while it is open.
/// Threads: any. Starts two, which end with it.
class PeerStream {
 public:
  struct Options {
    std::string name;   ///< for the log: "bulk to parameter-server-1#4"
    std::string hello;  ///< a serialized ReplicationHello
    std::function<std::unique_ptr<rpc::FrameStream>()> connect;
    std::function<void()> on_open;  ///< the peer has answered the hello; called on its own thread
    BackoffOptions backoff{.initial = std::chrono::milliseconds(50),
                           .max = std::chrono::milliseconds(500)};
  };

  /// More than this does not wait.
  static constexpr std::uint64_t kMaxQueuedBytes = std::uint64_t{512} << 20;

  /// `metrics` must outlive this.
  PeerStream(Options options, const PeerMetrics& metrics);
  ~PeerStream();
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  /// Queues a message. It is dropped when the stream is not open or breaks, or when too much waits.
  void Send(PeerMessage message);

  [[nodiscard]] bool IsOpen() const;

  /// Breaks the stream for good and makes the threads end.
  void Stop();

 private:
  void Run();
  bool Begin(rpc::FrameStream& stream);
  absl::Status Serve(rpc::FrameStream& stream, Backoff& backoff);
  absl::Status Greet(rpc::FrameStream& stream) const;
  void SendAll(rpc::FrameStream& stream);
  std::vector<PeerMessage> Take();
  void SetOpen(bool open);
  void Report(const absl::Status& status);
  bool Pause(std::chrono::milliseconds time);

  // Constant after construction.
  const Options options_;
  const PeerMetrics& metrics_;

  // Of the thread.
  bool away_ = false;  // the peer, and it was reported

  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  rpc::FrameStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<PeerMessage> queue_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  std::jthread thread_;
};

}  // namespace adamant::parameter_server
