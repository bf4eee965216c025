#include "services/common/rpc/server.h"

#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/listen.h"
#include "services/common/base/system/process.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/door.h"
#include "services/common/rpc/methods_service.h"

namespace adamant::rpc {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

// What a server starts at most before it serves: gRPC 1.51 has a thread for timers, a pool of as
// many as there are processors, from 2 to 32, and one to watch it, and half as many that poll; the
// door has one.
int ThreadsToStart() {
  const int processors = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  return 3 + std::clamp(processors, 2, 32) + std::clamp(processors / 2, 2, 16);
}

// Why gRPC cannot bind `address`, which it only logs: this tries again.
absl::Status WhyNotBound(const std::string& address) {
  ADAMANT_ASSIGN_OR_RETURN(const Listener listener, Listen(address));
  close(listener.socket);
  return absl::UnavailableError("cannot listen at " + address + ": unknown reason");
}

// A call may be the first word of a connection, and all there before its headers are looked at.
Door::Limits LimitsFor(const std::vector<UnaryMethod>& methods) {
  std::uint64_t largest = 0;
  for (const UnaryMethod& method : methods) {
    largest = std::max(largest, method.max_request_bytes);
  }
  Door::Limits limits;
  limits.most_bytes += largest;
  return limits;
}

// Who may open a socket of this machine has no need to prove who they are.
ServerOptions WithItsSecurity(ServerOptions options) {
  if (IsUnixSocket(options.address)) {
    options.security.reset();
  }
  return options;
}

std::shared_ptr<grpc::ServerCredentials> CredentialsOf(const ServerOptions& options) {
  return options.security ? MakeServerCredentials(*options.security)
                          : grpc::InsecureServerCredentials();
}

class GrpcServer final : public Server {
 public:
  GrpcServer(const ServerOptions& options,
             std::vector<FrameMethod> frame_methods,
             std::vector<UnaryMethod> unary_methods)
      : options_(options),
        limits_(LimitsFor(unary_methods)),
        methods_({.frame_methods = std::move(frame_methods),
                  .unary_methods = std::move(unary_methods),
                  .is_own_job = options.is_own_job,
                  .grace = options.security ? std::optional(options.security->grace) : std::nullopt,
                  .on_named = [this](std::string_view peer) { Admit(peer); }}) {}
  ~GrpcServer() override { Stop(); }

  absl::Status Start(const std::vector<grpc::Service*>& services) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder, options_);
    for (grpc::Service* service : services) {
      builder.RegisterService(service);
    }
    builder.RegisterService(&methods_);
    if (options_.is_own_job) {
      // gRPC's own health service reads whatever it is sent: methods_ has another.
      builder.SetOption(std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
    } else {
      grpc::EnableDefaultHealthCheckService(true);
    }
    const bool has_strangers = !IsUnixSocket(options_.address);
    return has_strangers && (options_.is_own_job || options_.has_door) ? StartBehindDoor(builder)
                                                                       : StartListening(builder);
  }

  [[nodiscard]] const std::string& address() const override { return address_; }

  void Admit(std::string_view peer) override {
    if (door_.has_value()) {
      door_->Admit(peer);
    }
  }

  void Stop() override {
    if (door_.has_value()) {
      door_->Close();
    }
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
    }
  }

 private:
  absl::Status StartBehindDoor(grpc::ServerBuilder& builder) {
    ADAMANT_ASSIGN_OR_RETURN(Listener listener, Listen(options_.address));
    door_.emplace(std::move(listener), limits_);
    address_ = door_->address();
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        CredentialsOf(options_));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError("cannot serve at " + address_ + ": gRPC does not start");
    }
    door_->Open([this](int socket) {
      Acceptor::NewConnectionParameters connection;
      connection.fd = socket;
      acceptor_->HandleNewConnection(&connection);
    });
    return absl::OkStatus();
  }

  absl::Status StartListening(grpc::ServerBuilder& builder) {
    int port = 0;
    builder.AddListeningPort(options_.address, CredentialsOf(options_), &port);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return WhyNotBound(options_.address);
    }
    address_ =
        IsUnixSocket(options_.address)
            ? options_.address
            : options_.address.substr(0, options_.address.rfind(':') + 1) + std::to_string(port);
    return absl::OkStatus();
  }

  const ServerOptions options_;
  const Door::Limits limits_;
  std::string address_;
  MethodsService methods_;
  std::unique_ptr<grpc::Server> server_;

  // Of a server with a door.
  std::unique_ptr<Acceptor> acceptor_;
  std::optional<Door> door_;  // last: its thread uses the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    const std::vector<grpc::Service*>& services,
                                                    std::vector<FrameMethod> frame_methods,
                                                    std::vector<UnaryMethod> unary_methods) {
  if (options.address.rfind(':') == std::string::npos) {  // gRPC would take port 443
    return absl::InvalidArgumentError("cannot listen at " + options.address +
                                      ": expected host:port");
  }
  CheckCanStartThreads(ThreadsToStart());  // gRPC hangs at its end where its timers have no thread
  auto server = std::make_unique<GrpcServer>(
      WithItsSecurity(options), std::move(frame_methods), std::move(unary_methods));
  ADAMANT_RETURN_IF_ERROR(server->Start(services));
  return server;
}

}  // namespace adamant::rpc
