#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <functional>

#include "operator/core/state/actions.h"
#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/mutex.h"

namespace adamant::control {

/// One control stream, in gRPC's callback form: it has no thread of its own.
/// Threads: any.
class Connection final : public grpc::ServerBidiReactor<v1::MemberMessage, v1::ControllerMessage> {
 public:
  /// Messages that may wait for one member. The controller sends few; one that takes none is stuck.
  static constexpr std::size_t kMaxWaiting = 4096;

  /// Called on a thread of gRPC, one call at a time.
  struct Callbacks {
    /// A message has come. Not OK: the stream ends with this status.
    std::function<grpc::Status(const v1::MemberMessage&)> on_message;
    /// The stream has ended; the connection may be destroyed from within.
    std::function<void()> on_done;
  };

  /// `context` must outlive the stream.
  explicit Connection(grpc::CallbackServerContext& context) : context_(context) {}

  /// Begins to read.
  void Begin(Callbacks callbacks);

  /// Instead of Begin: reads nothing, and ends the stream with `status`. `on_done` as there.
  void Refuse(const grpc::Status& status, std::function<void()> on_done);

  /// Queues a message; one that is stuck is cut.
  void Push(v1::ControllerMessage message);

  /// Ends the stream after what is queued.
  void Close();

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone() override;

  void End(const grpc::Status& status);
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CallbackServerContext& context_;
  Callbacks callbacks_;
  v1::MemberMessage incoming_;  // of the read in progress

  Mutex mutex_;
  v1::ControllerMessage outgoing_ ABSL_GUARDED_BY(mutex_);  // of the write in progress
  std::deque<v1::ControllerMessage> waiting_ ABSL_GUARDED_BY(mutex_);
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;    // nothing more is queued
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
};

}  // namespace adamant::control
