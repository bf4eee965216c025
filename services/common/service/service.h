#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tls/member_security.h"

namespace adamant::v1 {
enum Role : int;
class Welcome;
}  // namespace adamant::v1

namespace adamant::metrics {
class Registry;
}  // namespace adamant::metrics

namespace adamant::service {

/// The way from a service to its controller.
/// Threads: any.
class ControllerLink {
 public:
  virtual ~ControllerLink() = default;

  /// Queues a message and returns at once; messages are sent in order, also after a reconnect.
  /// A message on its way when the stream breaks is lost: the controller then repeats its command,
  /// and the service its answer.
  virtual void Send(const protocol::MemberMessage& message) = 0;

  /// The process cannot go on: reports `reason` to the controller, stops the service and exits with
  /// code 1. `fatal`: a restart would not help (bad data), so the job fails. The first call counts.
  virtual void Fail(const absl::Status& reason, bool fatal) = 0;

  /// As a fatal Fail, but training diverged: whether the job fails with it, the controller decides.
  virtual void FailDiverged(const absl::Status& reason) = 0;

  /// Returns whether the process is to end: a Start that takes long returns Cancelled then.
  [[nodiscard]] virtual bool stopping() const = 0;
};

/// Values of the flags by which a process gets its certificate: all of them, or none.
struct TlsFlags {
  std::string certificates;         ///< where Issue is served: see rpc::Resolve; empty: no TLS
  std::filesystem::path tls_token;  ///< a projected token: the kubelet replaces it
  std::string trust_domain;         ///< whose authority signs
  std::string name_space;           ///< of Kubernetes, where the process runs
  std::string roots;                ///< PEM: the first ones that it trusts, of ADAMANT_ROOTS
};

/// Values of the flags of a service.
struct ServiceFlags {
  std::string controller;          ///< where it may be: see rpc::Resolve
  std::string job;                 ///< which of the controller's jobs; empty: its only one
  std::uint32_t slot = 0;          ///< position within the role
  std::uint64_t generation = 0;    ///< of the slot's processes; 0: not known
  std::string pod_uid;             ///< UID of the pod that it runs in; empty: none is known
  std::filesystem::path data_dir;  ///< exists; of this process alone
  std::string listen;  ///< host:port of its server; port 0: the kernel chooses; or unix:PATH
  std::string replication_listen;  ///< parameter servers: the same, of the server for their peers
  std::string node;                ///< parameter servers: machine that it runs on, where known
  std::string zone;                ///< parameter servers: the same, zone
  std::string metrics_listen;      ///< host:port of /metrics; port 0: the kernel chooses
  TlsFlags tls;
};

/// Methods that a service answers, beside those of the health service.
struct Endpoints {
  std::vector<rpc::FrameMethod> frame_methods = {};
  std::vector<rpc::UnaryMethod> unary_methods = {};
  std::vector<rpc::FrameMethod> replication_methods = {};  ///< for its peers, on their own listener
  std::uint64_t max_message_bytes = std::uint64_t{4} << 20;
};

/// One service of a job, as RunService drives it:
///
///   factory → GetEndpoints → (server listens) → Start → OnMessage, OnRejoined … → Stop →
///   destructor
///
/// and, when it is a signal that ends it, BeginDrain before Stop, with messages in between.
/// Threads: those members run one after another on one thread; MakeHeartbeat runs on another, and
/// calls to the endpoints on threads of the server.
class Service {
 public:
  virtual ~Service() = default;

  /// Called once. The server listens before Start is called, because Join names its address: until
  /// then the endpoints must answer Unavailable. Without endpoints (workers) there is no server.
  virtual Endpoints GetEndpoints() = 0;

  /// The controller has admitted this process. Called once, not at reconnects. An error ends the
  /// process with code 1. InvalidArgument and DataLoss: the manifest, or the data that it names, is
  /// not valid; the message begins with the field, and the job fails with it.
  virtual absl::Status Start(const v1::Welcome& welcome) = 0;

  /// A message after Welcome, but never Stop or Refused; may come again after a reconnect. Should
  /// return within a second: what takes longer belongs on a thread of the service.
  virtual void OnMessage(const protocol::ControllerMessage& message) = 0;

  /// The stream to the controller is broken; OnRejoined follows when it is up again.
  virtual void OnControllerAway() {}

  /// The stream to the controller was broken and is up again: what was sent last may be lost. The
  /// controller says its commands again.
  virtual void OnRejoined() {}

  /// This process is asked to end while the job goes on: begin to hand over what only it has.
  virtual void BeginDrain() {}

  /// Returns whether there is nothing more to hand over. Asked after BeginDrain, until it returns
  /// true or a few seconds have passed.
  [[nodiscard]] virtual bool Drained() { return true; }

  /// Returns the progress that is reported, once a second after Start.
  virtual protocol::Heartbeat MakeHeartbeat() = 0;

  /// Stores what must be stored, refuses further work and wakes handlers that wait, within
  /// 10 seconds, draining included. Called once, after Start succeeded; messages sent from here
  /// still leave. The server stops next, which cancels open calls and waits for their handlers.
  virtual void Stop() = 0;
};

/// Parts that a service is made from; all of them outlive the service.
struct ServiceContext {
  const ServiceFlags& flags;
  ControllerLink& controller;
  metrics::Registry& metrics;

  /// Of the channels to the job's other processes. Those to the controller, and the servers of the
  /// endpoints, RunService makes.
  rpc::MemberSecurity security;
};

using ServiceFactory =
    std::function<absl::StatusOr<std::unique_ptr<Service>>(const ServiceContext&)>;

/// The main function of a service: parses the flags, starts logging, metrics, the server and the
/// control stream, and runs the service until it is told to stop (by the controller or by SIGTERM
/// or SIGINT; a second signal exits at once). Returns the exit code: 0 after an orderly stop, or
/// what --signalled-exit-code says where a signal has asked for it; 1 for a failure that a restart
/// may cure; 2 for bad flags or configuration; with one message on standard error in these two
/// cases.
int RunService(int argc, char** argv, v1::Role role, const ServiceFactory& factory);

}  // namespace adamant::service
