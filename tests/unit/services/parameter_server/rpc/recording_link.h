#pragma once

#include <atomic>
#include <cstddef>
#include <deque>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/codec/control.h"
#include "services/common/service/service.h"

namespace adamant::parameter_server {

/// Keeps what a service tells its controller, as it is sent.
class RecordingLink final : public service::ControllerLink {
 public:
  void Send(const protocol::MemberMessage& message) override {
    const MutexLock lock(mutex_);
    messages_.push_back(codec::Encode(message));
    changed_.NotifyAll();
  }

  void Fail(const absl::Status& reason, bool /*fatal*/) override {
    const MutexLock lock(mutex_);
    failure_ = reason;
    changed_.NotifyAll();
  }

  void FailDiverged(const absl::Status& reason) override { Fail(reason, true); }

  [[nodiscard]] bool stopping() const override { return stopping_; }

  /// The process is to end.
  void RequestStop() { stopping_ = true; }

  /// Waits for the next message.
  v1::MemberMessage Receive() {
    const MutexLock lock(mutex_);
    while (messages_.empty()) {
      changed_.Wait(mutex_);
    }
    v1::MemberMessage message = messages_.front();
    messages_.pop_front();
    return message;
  }

  /// Messages not yet received.
  std::size_t waiting() {
    const MutexLock lock(mutex_);
    return messages_.size();
  }

  absl::Status WaitForFailure() {
    const MutexLock lock(mutex_);
    while (failure_.ok()) {
      changed_.Wait(mutex_);
    }
    return failure_;
  }

 private:
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::deque<v1::MemberMessage> messages_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::parameter_server
