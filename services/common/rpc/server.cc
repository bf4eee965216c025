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
#include <utility>

#include "services/common/rpc/byte_buffer.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/status_grpc.h"

namespace adamant::rpc {
namespace {

using Streamer = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

class ServerStream final : public FrameStream {
 public:
  ServerStream(grpc::ServerContext& context, Streamer& streamer)
      : context_(context), streamer_(streamer) {}

  absl::StatusOr<IncomingFrame> Read() override {
    grpc::ByteBuffer message;
    if (streamer_.Read(&message)) {
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
};

// A gRPC service made by hand, because generated ones parse and copy their messages.
class FrameService final : public grpc::Service {
 public:
  explicit FrameService(std::vector<FrameMethod> methods) : methods_(std::move(methods)) {
    using Handler =
        grpc::internal::BidiStreamingHandler<FrameService, grpc::ByteBuffer, grpc::ByteBuffer>;
    for (const FrameMethod& method : methods_) {
      const auto serve = [&method](
                             FrameService*, grpc::ServerContext* context, Streamer* streamer) {
        ServerStream stream(*context, *streamer);
        return ToGrpc(method.handler(stream));
      };
      AddMethod(new grpc::internal::RpcServiceMethod(method.name.c_str(),
                                                     grpc::internal::RpcMethod::BIDI_STREAMING,
                                                     new Handler(serve, this)));
    }
  }

 private:
  const std::vector<FrameMethod> methods_;
};

class GrpcServer final : public Server {
 public:
  explicit GrpcServer(std::vector<FrameMethod> methods) : frame_service_(std::move(methods)) {}
  ~GrpcServer() override { Stop(); }

  // False when the address cannot be bound.
  bool Start(const ServerOptions& options, const std::vector<grpc::Service*>& services) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    ConfigureServer(builder, options.max_message_bytes);
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
  const std::string host = address.substr(0, colon);
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
  auto server = std::make_unique<GrpcServer>(std::move(frame_methods));
  if (!server->Start(options, services)) {
    return absl::UnavailableError("cannot listen on " + options.address + ": " +
                                  WhyNotBound(options.address));
  }
  return server;
}

}  // namespace adamant::rpc
