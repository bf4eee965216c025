#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <thread>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::parameter_server {

/// Replies that go back on one stream, in the order in which they become ready, and the pushes that
/// have no answer yet.
/// Threads: Answer from any, also after Close; the others from the one that reads the stream. Has
/// one that writes, so that a client that does not read holds nobody else up.
class Replies {
 public:
  /// Names a push on this stream.
  using PushId = std::uint64_t;

  /// Returns whether waiting is pointless by now; asked now and then.
  using GiveUp = std::function<bool()>;

  /// `stream` must stay until Close has returned.
  explicit Replies(rpc::FrameStream& stream);
  ~Replies();
  Replies(const Replies&) = delete;
  Replies& operator=(const Replies&) = delete;

  /// Sends a reply; it does not wait for answers to pushes.
  void Send(rpc::OutgoingFrame reply);

  /// A push of so much payload to these shards begins. Submitted must follow.
  PushId Begin(std::uint64_t bytes, std::vector<ShardId> shards);

  /// Sends the answer to a push, whether or not earlier ones have theirs.
  void Answer(PushId push, rpc::OutgoingFrame reply);

  /// The last push that began has been handed over: if it is answered already, this sends it.
  void Submitted();

  /// Waits until a push of so much payload may begin beside those without an answer. False: given
  /// up.
  bool AwaitRoom(std::uint64_t bytes, const GiveUp& give_up);

  /// Waits until all pushes are answered. False: given up.
  bool AwaitAll(const GiveUp& give_up);

  /// Waits, but not for long, until the pushes to these shards are answered; returns the shards,
  /// ascending, whose are not.
  std::vector<ShardId> AwaitPushesTo(std::span<const ShardId> shards);

  /// Sends what is ready and ends the thread; what is answered later is dropped. Idempotent.
  void Close();

 private:
  struct Push {
    std::uint64_t bytes = 0;
    std::vector<ShardId> shards;
  };

  void KeepWriting();
  void WriteQueued() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::vector<ShardId> Unanswered(const std::vector<ShardId>& among) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  rpc::FrameStream& stream_;

  // Guarded.
  Mutex mutex_;
  CondVar queued_;
  CondVar answered_;
  std::deque<rpc::OutgoingFrame> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // the stream, for writing
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<PushId, Push> unanswered_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t unanswered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  PushId last_push_ ABSL_GUARDED_BY(mutex_) = 0;
  bool submitting_ ABSL_GUARDED_BY(mutex_) = false;  // the last push

  std::jthread writer_;
};

}  // namespace adamant::parameter_server
