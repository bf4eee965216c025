#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/control/member_identity.h"
#include "operator/core/job/job_controller.h"
#include "services/common/rpc/tls/server_security.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::control {

/// Ways in which the members of a job reach its controller.
enum class StreamSecurity : std::uint8_t { kPlain, kTls };

/// A listener of streams by TLS.
struct SecuredListener {
  std::string address;  ///< host:port; port 0: of the kernel's choice
  rpc::ServerSecurity security;

  /// Called for each member that is not who it says, on any thread; must not wait. Null: nobody
  /// counts.
  std::function<void(Mismatch mismatch)> on_mismatch = {};
};

/// The controllers' gRPC server: control streams become events, messages go out on their streams,
/// and GetStatus answers with the latest report. Serves many jobs; ConnectionIds are unique among
/// all of them.
/// Threads: all members from any thread. A stream has no thread of its own.
class ControlServer {
 public:
  /// Takes what happens on the streams of a job, each stream's events in order. Called on threads
  /// of the server; must not wait.
  using Sink = std::function<void(controller::Event)>;

  virtual ~ControlServer() = default;

  /// host:port, with the port in use, of streams without TLS.
  [[nodiscard]] virtual const std::string& address() const = 0;

  /// Listens for streams by TLS from now on; those of jobs without it do not come there. To be
  /// called once at most. Errors: Unavailable.
  virtual absl::Status Listen(const SecuredListener& listener) = 0;

  /// Likewise, of streams by TLS; "": it does not listen for them.
  [[nodiscard]] virtual std::string secured_address() const = 0;

  /// Admits the streams of members whose Join names `job`; others are told to try again. By TLS
  /// Join must say what the member's certificate does. `spec` and `data_root` are handed out in
  /// Welcome. `sink` must stay callable until Stop has returned.
  virtual void AddJob(const std::string& job,
                      StreamSecurity security,
                      const v1::TrainingJob& spec,
                      const std::string& data_root,
                      Sink sink) = 0;

  /// Ends the streams of a job and admits no more.
  virtual void RemoveJob(const std::string& job) = 0;

  /// Queues a message. A connection that is gone or does not take its messages is closed.
  virtual void Send(const controller::Send& send) = 0;

  /// Ends the stream after what is queued.
  virtual void Close(controller::ConnectionId connection) = 0;

  /// Sets what GetStatus answers from now on.
  virtual void SetReport(const std::string& job, const controller::JobReport& report) = 0;

  /// Ends all streams.
  virtual void Stop() = 0;
};

/// Starts it at `listen`, host:port; port 0: of the kernel's choice. Errors: Unavailable.
absl::StatusOr<std::unique_ptr<ControlServer>> StartControlServer(const std::string& listen);

}  // namespace adamant::control
