#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/core/job_controller.h"
#include "operator/local/event_queue.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// The controller's gRPC server: control streams become events, messages go out on their streams,
/// and GetStatus answers with the latest report.
/// Threads: all members from any thread.
class ControlServer {
 public:
  virtual ~ControlServer() = default;

  /// host:port, with the port in use.
  [[nodiscard]] virtual const std::string& address() const = 0;

  /// Queues a message. A connection that is gone or does not take its messages is closed.
  virtual void Send(const controller::Send& send) = 0;

  /// Ends the stream after what is queued.
  virtual void Close(controller::ConnectionId connection) = 0;

  /// What GetStatus answers from now on.
  virtual void SetReport(const controller::JobReport& report) = 0;

  /// Ends all streams.
  virtual void Stop() = 0;
};

/// Starts it at `listen`, host:port; port 0: of the kernel's choice. `job` and `data_root` are
/// handed out in Welcome; `events` must outlive the server. Errors: Unavailable.
absl::StatusOr<std::unique_ptr<ControlServer>> StartControlServer(const std::string& listen,
                                                                  const v1::TrainingJob& job,
                                                                  const std::string& data_root,
                                                                  EventQueue& events);

}  // namespace adamant::local
