#include "services/common/rpc/methods_service.h"

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/rpc/byte_buffer.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::rpc {
namespace {

using Streamer = grpc::ServerReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

absl::Status NotOurs() {
  return absl::UnavailableError("this server is not of that job, or has not joined it yet");
}

// grpc.health.v1.HealthCheckResponse{status: SERVING} on the wire.
absl::Status ServeHealth(Streamer& streamer) {
  const grpc::Slice serving("\x08\x01");
  streamer.Write(grpc::ByteBuffer(&serving, 1));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadRequest(Streamer& streamer, std::uint64_t most_bytes) {
  grpc::ByteBuffer message;
  grpc::Slice bytes;
  if (!streamer.Read(&message)) {
    return absl::InvalidArgumentError("a call without a request");
  }
  if (message.Length() > most_bytes) {
    return absl::InvalidArgumentError("a request of " + std::to_string(message.Length()) +
                                      " bytes; it has at most " + std::to_string(most_bytes));
  }
  if (const grpc::Status status = message.DumpToSingleSlice(&bytes); !status.ok()) {
    return absl::DataLossError("a request cannot be read: " + status.error_message());
  }
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

}  // namespace

class MethodsService::ServerStream final : public FrameStream {
 public:
  ServerStream(grpc::ServerContext& context, Streamer& streamer, Entry entry)
      : context_(context), streamer_(streamer), entry_(std::move(entry)) {}

  absl::StatusOr<IncomingFrame> Read() override {
    grpc::ByteBuffer message;
    if (streamer_.Read(&message)) {
      return entry_.place == nullptr ? FromByteBuffer(message) : ReadHello(message);
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

  [[nodiscard]] const security::PeerIdentity* peer() const override { return ClientOf(entry_); }

 private:
  absl::StatusOr<IncomingFrame> ReadHello(grpc::ByteBuffer& message) {
    ADAMANT_RETURN_IF_ERROR(CheckHelloBytes(message.Length()));
    ADAMANT_ASSIGN_OR_RETURN(IncomingFrame frame, FromByteBuffer(message));
    if (entry_.identify) {
      ADAMANT_RETURN_IF_ERROR(entry_.identify(frame.header()));
    }
    entry_.place.reset();
    return frame;
  }

  grpc::ServerContext& context_;
  Streamer& streamer_;
  Entry entry_;
};

MethodsService::MethodsService(Options options) : options_(std::move(options)) {
  for (const FrameMethod& method : options_.frame_methods) {
    Add(method.name.c_str(), [this, &method](grpc::ServerContext& context, Streamer& streamer) {
      return ServeFrames(method, context, streamer);
    });
  }
  for (const UnaryMethod& method : options_.unary_methods) {
    Add(method.name.c_str(), [this, &method](grpc::ServerContext& context, Streamer& streamer) {
      return ServeUnary(method, context, streamer);
    });
  }
  if (options_.grace) {
    certified_calls_.emplace(*options_.grace);
  }
  if (options_.is_own_job) {
    guard_.emplace(StreamGuard::Limits{});
    Add("/grpc.health.v1.Health/Check",
        [](grpc::ServerContext& /*context*/, Streamer& streamer) { return ServeHealth(streamer); });
  }
}

void MethodsService::Add(const char* name, Serve serve) {
  using Handler =
      grpc::internal::BidiStreamingHandler<MethodsService, grpc::ByteBuffer, grpc::ByteBuffer>;
  const auto handle = [serve = std::move(serve)](MethodsService* /*service*/,
                                                 grpc::ServerContext* context,
                                                 Streamer* streamer) {
    return ToGrpc(serve(*context, *streamer));
  };
  AddMethod(new grpc::internal::RpcServiceMethod(
      name, grpc::internal::RpcMethod::BIDI_STREAMING, new Handler(handle, this)));
}

absl::Status MethodsService::ServeFrames(const FrameMethod& method,
                                         grpc::ServerContext& context,
                                         Streamer& streamer) {
  ADAMANT_ASSIGN_OR_RETURN(Entry entry, LetIn(method.job_of, context));
  ServerStream stream(context, streamer, std::move(entry));
  return method.handler(stream);
}

absl::Status MethodsService::ServeUnary(const UnaryMethod& method,
                                        grpc::ServerContext& context,
                                        Streamer& streamer) {
  ADAMANT_ASSIGN_OR_RETURN(Entry entry, LetIn(method.job_of, context));
  ADAMANT_ASSIGN_OR_RETURN(const std::string request,
                           ReadRequest(streamer, method.max_request_bytes));
  if (entry.identify) {
    ADAMANT_RETURN_IF_ERROR(entry.identify(request));
  }
  entry.place.reset();
  const Caller caller{.cancelled = [&context] { return context.IsCancelled(); },
                      .identity = ClientOf(entry)};
  ADAMANT_ASSIGN_OR_RETURN(const std::string reply, method.handler(request, caller));
  const grpc::Slice bytes(reply);
  streamer.Write(grpc::ByteBuffer(&bytes, 1));
  return absl::OkStatus();
}

// Null where nobody knows.
const security::PeerIdentity* MethodsService::ClientOf(const Entry& entry) {
  return entry.call == nullptr ? nullptr : &entry.call->client().identity;
}

absl::StatusOr<MethodsService::Entry> MethodsService::LetIn(const JobOf& job_of,
                                                            grpc::ServerContext& context) {
  Entry entry;
  if (certified_calls_) {
    ADAMANT_ASSIGN_OR_RETURN(entry.call, certified_calls_->Enter(context));
  }
  if (!guard_) {
    return entry;
  }
  const auto job = context.client_metadata().find(kJobKey);
  const bool named = job != context.client_metadata().end();
  if (named ? !options_.is_own_job({job->second.data(), job->second.size()}) : job_of == nullptr) {
    return NotOurs();
  }
  ADAMANT_ASSIGN_OR_RETURN(entry.place, guard_->Enter(named, [&context] { context.TryCancel(); }));
  if (named) {
    options_.on_named(context.peer());
  } else {
    entry.identify = [this, &job_of, &context](std::string_view message) -> absl::Status {
      if (!options_.is_own_job(job_of(message))) {
        return NotOurs();
      }
      options_.on_named(context.peer());
      return absl::OkStatus();
    };
  }
  return entry;
}

}  // namespace adamant::rpc
