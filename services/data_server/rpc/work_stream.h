#pragma once

#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/work.h"
#include "services/common/rpc/frame.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/rpc/batch_pipeline.h"
#include "services/data_server/rpc/data_metrics.h"

namespace adamant::data_server {

using protocol::Normalisation;

/// The sending half of one worker's stream: messages are queued and written by Run, so that a slow
/// worker holds up nobody else. Only what is queued is small; a batch's images are taken from the
/// pipeline when its turn to be written has come, and lent to the transport without a copy.
/// Threads: any, but Run.
class WorkStream {
 public:
  /// `stream` must live until Detach, the others longer than this.
  WorkStream(rpc::FrameStream& stream, BatchPipeline& pipeline, const DataMetrics& metrics)
      : stream_(stream), pipeline_(pipeline), metrics_(metrics) {}

  /// Answers the Hello: `refused` is empty, or says why.
  void AnswerHello(const std::string& refused, const Normalisation& normalisation);

  /// Waits for AnswerHello or Close; true if the worker was admitted.
  bool AwaitAdmission();

  /// Queue messages. A worker that does not read until the queue is full is cut off.
  void Send(const Dispatch& dispatch) { Push(dispatch); }
  void Send(std::string header) { Push(std::move(header)); }

  /// No more messages: Run ends when all are written.
  void Close();

  /// Breaks the stream, unless it has ended; Run ends at once.
  void Cancel();

  /// The stream has ended: it is not touched any more.
  void Detach();

  /// Writes until closed or broken. On one thread.
  absl::Status Run();

 private:
  using Message = std::variant<std::string, Dispatch>;

  void Push(Message message);
  std::optional<Message> Next();
  rpc::OutgoingFrame FrameOf(const Dispatch& dispatch);

  rpc::FrameStream& stream_;
  BatchPipeline& pipeline_;
  const DataMetrics& metrics_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Message> queue_ ABSL_GUARDED_BY(mutex_);
  std::optional<bool> admitted_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool detached_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace adamant::data_server
