#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/exit_codes.h"
#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/process.h"
#include "services/common/metrics/exposer.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/grpc_log.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/rpc/tls/failed_handshakes.h"
#include "services/common/rpc/tls/server_security.h"
#include "services/common/rpc/tls/tls13.h"
#include "services/common/rpc/tune_malloc.h"
#include "services/common/security/expected_peer.h"
#include "services/common/security/peer_identity.h"
#include "services/common/service/control_stream.h"
#include "services/common/service/flags.h"
#include "services/common/service/identity_client.h"
#include "services/common/service/refusals.h"
#include "services/common/service/service.h"
#include "services/common/service/stop_signals.h"

namespace adamant::service {
namespace {

constexpr std::chrono::seconds kHeartbeatInterval(1);
constexpr std::chrono::seconds kDrainTimeout(4);
constexpr std::chrono::milliseconds kDrainCheckInterval(20);
constexpr std::chrono::seconds kLeaveTimeout(3);
constexpr int kFailed = 1;

constexpr char kPrefix[] = "adamant-";

security::Role SecurityRoleOf(v1::Role role) {
  switch (role) {
    case v1::DATA_SERVER:
      return security::Role::kDataServer;
    case v1::PARAMETER_SERVER:
      return security::Role::kParameterServer;
    default:
      return security::Role::kWorker;
  }
}

const char* ProgramOf(v1::Role role) {
  switch (role) {
    case v1::DATA_SERVER:
      return "adamant-data-server";
    case v1::PARAMETER_SERVER:
      return "adamant-parameter-server";
    default:
      return "adamant-worker";
  }
}

std::string NameOf(v1::Role role) { return ProgramOf(role) + std::strlen(kPrefix); }

// A name that no other process start has.
absl::StatusOr<std::string> NewUid() {
  ADAMANT_ASSIGN_OR_RETURN(std::string uid, ReadFile("/proc/sys/kernel/random/uuid", 64));
  while (!uid.empty() && uid.back() == '\n') {
    uid.pop_back();
  }
  return uid;
}

// Sends the service's progress once a second until destroyed.
class Heart {
 public:
  Heart(Service& service, ControlStream& stream)
      : service_(service), stream_(stream), thread_([this] { Beat(); }) {}

  ~Heart() {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

 private:
  void Beat() {
    while (true) {
      stream_.Send(service_.MakeHeartbeat());
      MutexLock lock(mutex_);
      if (!stopped_) {
        changed_.WaitFor(mutex_, kHeartbeatInterval);
      }
      if (stopped_) {
        return;
      }
    }
  }

  Service& service_;
  ControlStream& stream_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The job that this process has joined, as the streams to it name it. Threads: any.
class OwnJob {
 public:
  void Set(std::uint64_t uid) {
    const MutexLock lock(mutex_);
    name_ = std::to_string(uid);
  }

  bool Is(std::string_view job) {
    const MutexLock lock(mutex_);
    return !name_.empty() && job == name_;
  }

 private:
  Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);  // empty: none yet
};

// False when the process should end instead.
absl::StatusOr<bool> Start(Service& service, const v1::Welcome& welcome, ControlStream& stream) {
  const absl::Status status = service.Start(welcome);
  if (status.ok()) {
    return true;
  }
  if (absl::IsCancelled(status) && stream.stopping()) {
    return false;
  }
  if (absl::IsInvalidArgument(status) || absl::IsDataLoss(status)) {
    stream.Refuse(status);
  } else {
    stream.Fail(status, false);
  }
  return status;
}

// Waits for Welcome and starts `service`; false when the process should end instead, and why.
absl::StatusOr<bool> StartService(Service& service, ControlStream& stream, OwnJob& job) {
  while (true) {
    const ControlStream::Event event = stream.Next();
    if (const auto* welcome = std::get_if<v1::Welcome>(&event)) {
      job.Set(welcome->job_uid());
      return Start(service, *welcome, stream);
    }
    if (std::holds_alternative<ControlStream::StopRequested>(event)) {
      return false;
    }
    if (const auto* end = std::get_if<ControlStream::End>(&event)) {
      return end->status.ok() ? absl::StatusOr<bool>(false) : end->status;
    }
  }
}

// Hands `event` to the service; false when it is the end.
bool Deliver(const ControlStream::Event& event, Service& service) {
  if (const auto* message = std::get_if<protocol::ControllerMessage>(&event)) {
    service.OnMessage(*message);
  } else if (std::holds_alternative<ControlStream::Away>(event)) {
    service.OnControllerAway();
  } else if (std::holds_alternative<ControlStream::Rejoined>(event)) {
    service.OnRejoined();
  }
  return !std::holds_alternative<ControlStream::End>(event);
}

// Lets the service hand over, for a few seconds at most; returns at once when the controller says
// that this is the end, or when the process fails.
absl::Status Drain(Service& service, ControlStream& stream) {
  const auto deadline = std::chrono::steady_clock::now() + kDrainTimeout;
  service.BeginDrain();
  while (!service.Drained() && std::chrono::steady_clock::now() < deadline) {
    const std::optional<ControlStream::Event> event = stream.NextWithin(kDrainCheckInterval);
    if (event.has_value() && !Deliver(*event, service)) {
      return std::get<ControlStream::End>(*event).status;
    }
  }
  return absl::OkStatus();
}

// Drives `service` until it should end; says why.
absl::Status Drive(Service& service, ControlStream& stream, OwnJob& job) {
  ADAMANT_ASSIGN_OR_RETURN(const bool started, StartService(service, stream, job));
  if (!started) {
    return absl::OkStatus();
  }
  absl::Status status;
  {
    const Heart heart(service, stream);
    ControlStream::Event event = stream.Next();
    while (!std::holds_alternative<ControlStream::StopRequested>(event) &&
           Deliver(event, service)) {
      event = stream.Next();
    }
    const auto* end = std::get_if<ControlStream::End>(&event);
    status = end != nullptr ? end->status : Drain(service, stream);
  }
  service.Stop();
  return status;
}

protocol::Join MakeJoin(v1::Role role, const ServiceFlags& flags, std::string uid) {
  return {.id = {.role = static_cast<protocol::Role>(role), .slot = flags.slot},
          .uid = std::move(uid),
          .node = flags.node,
          .zone = flags.zone,
          .generation = flags.generation,
          .pod_uid = flags.pod_uid};
}

struct Listeners {
  std::unique_ptr<rpc::Server> service;      // null: it answers to nothing
  std::unique_ptr<rpc::Server> replication;  // null: it has no peers

  void Stop() const {
    for (rpc::Server* const server : {service.get(), replication.get()}) {
      if (server != nullptr) {
        server->Stop();
      }
    }
  }
};

// Null: no TLS.
absl::StatusOr<std::unique_ptr<IdentityClient>> MakeIdentityClient(v1::Role role,
                                                                   const ServiceFlags& flags) {
  if (flags.tls.certificates.empty()) {
    return nullptr;
  }
  const IdentityClient::Options options{.flags = flags.tls,
                                        .identity = {.trust_domain = flags.tls.trust_domain,
                                                     .name_space = flags.tls.name_space,
                                                     .role = SecurityRoleOf(role),
                                                     .job_uid = flags.job,
                                                     .slot = flags.slot,
                                                     .generation = flags.generation}};
  if (const absl::Status status = security::CheckIdentity(options.identity); !status.ok()) {
    return absl::InvalidArgumentError("--trust-domain, --namespace or --job: " +
                                      std::string(status.message()));
  }
  return std::make_unique<IdentityClient>(options);
}

// What a process with TLS has besides its certificate.
struct Security {
  Security(const std::shared_ptr<const security::IdentityStore>& identity,
           const std::string& trust_domain,
           metrics::Registry& registry)
      : handshakes(registry),
        refusals(registry),
        server{.identity = identity,
               .on_refused = [this](const rpc::Refusal& refusal) { refusals.Add(refusal); }},
        members(identity),
        controller(std::make_shared<const rpc::ChannelSecurity>(rpc::ChannelSecurity{
            .identity = identity, .peer = security::ExpectOperator(trust_domain)})) {}
  Security(const Security&) = delete;
  Security& operator=(const Security&) = delete;

  const rpc::FailedHandshakes handshakes;
  Refusals refusals;
  const rpc::ServerSecurity server;
  const rpc::MemberSecurity members;
  const std::shared_ptr<const rpc::ChannelSecurity> controller;
};

// Waits for the first certificate. False when the process should end instead. One that is refused
// it may be replaced by another which is not, so that this is Unavailable.
absl::StatusOr<bool> GetCertificate(IdentityClient& identity, ControlStream& stream) {
  const absl::Status status = identity.Start([&stream](const absl::Status& why) {
    stream.EndAsReplaced(absl::FailedPreconditionError(
        "operators refuse to renew its certificate: " + std::string(why.message())));
  });
  if (absl::IsPermissionDenied(status)) {
    return absl::UnavailableError("operators refuse it a certificate: " +
                                  std::string(status.message()));
  }
  return status.ok();  // else it was told to stop
}

// Serves the endpoints, and tells `join` where. `security`: null: plain text.
absl::StatusOr<Listeners> Listen(Endpoints endpoints,
                                 const ServiceFlags& flags,
                                 const Security* security,
                                 OwnJob& job,
                                 protocol::Join& join) {
  Listeners listeners;
  rpc::ServerOptions options{.address = flags.listen,
                             .max_message_bytes = endpoints.max_message_bytes,
                             .is_own_job = [&job](std::string_view name) { return job.Is(name); }};
  if (security != nullptr) {
    options.security = security->server;
  }
  if (!endpoints.frame_methods.empty() || !endpoints.unary_methods.empty()) {
    ADAMANT_ASSIGN_OR_RETURN(
        listeners.service,
        rpc::StartServer(
            options, {}, std::move(endpoints.frame_methods), std::move(endpoints.unary_methods)));
    join.address = listeners.service->address();
  }
  if (!endpoints.replication_methods.empty()) {
    options.address = flags.replication_listen;
    ADAMANT_ASSIGN_OR_RETURN(
        listeners.replication,
        rpc::StartServer(options, {}, std::move(endpoints.replication_methods)));
    join.replication_address = listeners.replication->address();
  }
  return listeners;
}

// Everything between the flags and the exit. `configured` tells whether the process got as far as
// joining: what fails before is a matter of flags and configuration, unless it is Unavailable.
// `identity`: null: no TLS.
absl::Status Serve(v1::Role role,
                   const ServiceFlags& flags,
                   ControlStream& stream,
                   IdentityClient* identity,
                   const ServiceFactory& factory,
                   bool& configured) {
  ADAMANT_ASSIGN_OR_RETURN(std::string uid, NewUid());
  std::error_code error;
  std::filesystem::create_directories(flags.data_dir, error);
  if (error) {
    const absl::Status why = SystemError(error.value(), "cannot create", flags.data_dir);
    return absl::InvalidArgumentError("--data-dir: " + std::string(why.message()));
  }
  metrics::Registry registry;
  ADAMANT_ASSIGN_OR_RETURN(const auto exposer,
                           metrics::Exposer::Start(flags.metrics_listen, registry));
  std::optional<Security> security;
  if (identity != nullptr) {
    security.emplace(identity->store(), flags.tls.trust_domain, registry);
  }
  ADAMANT_ASSIGN_OR_RETURN(
      const auto service,
      factory({flags, stream, registry, security ? security->members : rpc::MemberSecurity()}));
  if (security) {
    ADAMANT_ASSIGN_OR_RETURN(const bool has_certificate, GetCertificate(*identity, stream));
    if (!has_certificate) {
      return absl::OkStatus();
    }
  }
  protocol::Join join = MakeJoin(role, flags, std::move(uid));
  join.metrics_address = exposer->address();
  OwnJob job;
  ADAMANT_ASSIGN_OR_RETURN(
      const Listeners listeners,
      Listen(service->GetEndpoints(), flags, security ? &*security : nullptr, job, join));
  configured = true;
  stream.Join(std::move(join), flags.job, security ? security->controller : nullptr);
  const absl::Status status = Drive(*service, stream, job);
  if (status.ok()) {
    stream.Send(protocol::Leaving{});
  }
  stream.Leave(kLeaveTimeout);
  listeners.Stop();
  return status;
}

}  // namespace

int RunService(int argc, char** argv, v1::Role role, const ServiceFactory& factory) {
  rpc::RequireTls13();
  PrepareProcess(ProgramOf(role));
  rpc::TuneMalloc();
  auto parsed = ParseFlags(argc, argv, NameOf(role));
  if (const int* exit_code = std::get_if<int>(&parsed)) {
    return *exit_code;
  }
  const ParsedFlags& flags = std::get<ParsedFlags>(parsed);
  InitLog(NameOf(role) + "-" + std::to_string(flags.service.slot), flags.log_level);
  rpc::RouteGrpcLog();
  if (flags.parent_pid != 0 && !FollowParent(flags.parent_pid)) {
    LogError("the parent process has ended", {{"pid", flags.parent_pid}});
    return kFailed;
  }
  ControlStream stream(flags.service.controller);
  const auto identity = MakeIdentityClient(role, flags.service);
  if (!identity.ok()) {
    LogError("failed", {{"error", std::string(identity.status().message())}});
    return kBadConfiguration;
  }
  std::atomic<bool> signalled = false;
  const StopSignals signals([&] {
    signalled = true;
    stream.RequestStop();
    if (*identity != nullptr) {
      (*identity)->Stop();
    }
  });
  rpc::KeepGrpc();  // now, because its threads must not take those signals
  bool configured = false;
  const absl::Status status =
      Serve(role, flags.service, stream, identity->get(), factory, configured);
  if (status.ok()) {
    LogInfo("stopped");
    return signalled ? flags.signalled_exit_code : 0;
  }
  LogError("failed", {{"error", std::string(status.message())}});
  return configured || absl::IsUnavailable(status) ? kFailed : kBadConfiguration;
}

}  // namespace adamant::service
