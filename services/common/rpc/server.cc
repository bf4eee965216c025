#include "services/common/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/rpc/byte_buffer.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::rpc {
namespace {

using Streamer = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

class ServerStream final : public FrameStream {
 public:
  // `place`: until the first message has come; null: the server has no guard.
  ServerStream(grpc::ServerContext& context,
               Streamer& streamer,
               std::unique_ptr<StreamGuard::Place> place)
      : context_(context), streamer_(streamer), place_(std::move(place)) {}

  absl::StatusOr<IncomingFrame> Read() override {
    grpc::ByteBuffer message;
    if (streamer_.Read(&message)) {
      if (place_ != nullptr) {
        ADAMANT_RETURN_IF_ERROR(CheckHelloBytes(message.Length()));
        place_.reset();
      }
      return FromByteBuffer(message);
    }
    if (context_.IsCancelled()) {
      return absl::CancelledError(context_.peer() + ": the stream was cancelled");
    }
    return absl::OutOfRangeError(context_.peer() + ": end of the stream");
  }

  absl::Status Write(OutgoingFrame frame) override {
    grpc::ByteBuffer message;
    ToByteBuffer(std::move(frame), message);
    if (!streamer_.Write(message)) {
      return absl::UnavailableError(context_.peer() + ": the stream is broken");
    }
    return absl::OkStatus();
  }

  void CloseWrites() override {}

  void Cancel() override { context_.TryCancel(); }

  [[nodiscard]] bool Cancelled() override { return context_.IsCancelled(); }

 private:
  grpc::ServerContext& context_;
  Streamer& streamer_;
  std::unique_ptr<StreamGuard::Place> place_;
};

// A gRPC service made by hand, because generated ones parse and copy their messages.
class FrameService final : public grpc::Service {
 public:
  FrameService(std::vector<FrameMethod> methods, std::function<bool(std::string_view)> is_own_job)
      : methods_(std::move(methods)), is_own_job_(std::move(is_own_job)) {
    if (is_own_job_) {
      guard_.emplace(StreamGuard::Limits{});
    }
    using Handler =
        grpc::internal::BidiStreamingHandler<FrameService, grpc::ByteBuffer, grpc::ByteBuffer>;
    for (const FrameMethod& method : methods_) {
      const auto serve =
          [&method](FrameService* service, grpc::ServerContext* context, Streamer* streamer) {
            return ToGrpc(service->Serve(method, *context, *streamer));
          };
      AddMethod(new grpc::internal::RpcServiceMethod(method.name.c_str(),
                                                     grpc::internal::RpcMethod::BIDI_STREAMING,
                                                     new Handler(serve, this)));
    }
  }

 private:
  absl::Status Serve(const FrameMethod& method, grpc::ServerContext& context, Streamer& streamer) {
    std::unique_ptr<StreamGuard::Place> place;
    if (guard_) {
      ADAMANT_ASSIGN_OR_RETURN(place, LetIn(context));
    }
    ServerStream stream(context, streamer, std::move(place));
    return method.handler(stream);
  }

  absl::StatusOr<std::unique_ptr<StreamGuard::Place>> LetIn(grpc::ServerContext& context) {
    const auto job = context.client_metadata().find(kJobKey);
    const bool named = job != context.client_metadata().end();
    if (named && !is_own_job_({job->second.data(), job->second.size()})) {
      return absl::UnavailableError("this server is not of that job, or has not joined it yet");
    }
    return guard_->Enter(named, [&context] { context.TryCancel(); });
  }

  const std::vector<FrameMethod> methods_;
  const std::function<bool(std::string_view)> is_own_job_;
  std::optional<StreamGuard> guard_;
};

class GrpcServer final : public Server {
 public:
  GrpcServer(std::vector<FrameMethod> methods, std::function<bool(std::string_view)> is_own_job)
      : frame_service_(std::move(methods), std::move(is_own_job)) {}
  ~GrpcServer() override { Stop(); }

  // False when the address cannot be bound.
  bool Start(const ServerOptions& options, const std::vector<grpc::Service*>& services) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    ConfigureServer(builder, options);
    int port = 0;
    builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &port);
    for (grpc::Service* service : services) {
      builder.RegisterService(service);
    }
    builder.RegisterService(&frame_service_);
    server_ = builder.BuildAndStart();
    const std::string host = options.address.substr(0, options.address.rfind(':'));
    address_ = host + ":" + std::to_string(port);
    return server_ != nullptr && port != 0;
  }

  [[nodiscard]] const std::string& address() const override { return address_; }

  void Stop() override {
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
    }
  }

 private:
  FrameService frame_service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Why `address` cannot be bound: gRPC only logs it, so this tries again and asks the system.
std::string WhyNotBound(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const std::string port = address.substr(colon + 1);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return gai_strerror(error);
  }
  std::string reason = "unknown reason";
  const int file = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  if (file < 0 || bind(file, found->ai_addr, found->ai_addrlen) != 0 || listen(file, 1) != 0) {
    reason = std::strerror(errno);
  }
  if (file >= 0) {
    close(file);
  }
  freeaddrinfo(found);
  return reason;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartServer(const ServerOptions& options,
                                                    const std::vector<grpc::Service*>& services,
                                                    std::vector<FrameMethod> frame_methods) {
  if (options.address.rfind(':') == std::string::npos) {  // gRPC would take port 443
    return absl::InvalidArgumentError("cannot listen on " + options.address +
                                      ": expected host:port");
  }
  auto server = std::make_unique<GrpcServer>(std::move(frame_methods), options.is_own_job);
  if (!server->Start(options, services)) {
    return absl::UnavailableError("cannot listen on " + options.address + ": " +
                                  WhyNotBound(options.address));
  }
  return server;
}

}  // namespace adamant::rpc
