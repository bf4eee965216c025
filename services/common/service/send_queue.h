#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/mutex.h"

namespace adamant::service {

/// Messages to the controller that wait to be sent, in order.
/// Threads: any may Push; one at a time may Take.
class SendQueue {
 public:
  /// More wait only while the controller is away. It asks again when it is back, so the oldest may
  /// go.
  static constexpr std::size_t kMaxMessages = 1024;

  /// Adds a message; a heartbeat takes the place of one that still waits. False when the oldest
  /// message was dropped to make room.
  bool Push(v1::MemberMessage message);

  /// Waits for the next message. Nothing after Interrupt, or when closed and empty.
  std::optional<v1::MemberMessage> Take();

  /// Ends the Take that waits and those to come, until Resume.
  void Interrupt();
  void Resume();

  /// No message waits to be followed by another: Take returns what is left, then nothing.
  void Close();

  /// Returns whether Close was called and everything was taken.
  [[nodiscard]] bool finished() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<v1::MemberMessage> messages_ ABSL_GUARDED_BY(mutex_);
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace adamant::service
