#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <optional>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/rpc/byte_buffer.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::rpc {
namespace {

using Call = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
using CallFactory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;

class ClientStream final : public FrameStream {
 public:
  ClientStream(std::string address,
               std::string method,
               std::uint64_t max_message_bytes,
               const Liveness& liveness,
               const std::string& job,
               const ChannelSecurity* security)
      : address_(std::move(address)),
        method_name_(std::move(method)),
        channel_(NewChannel(address_, max_message_bytes, liveness, security)) {
    if (!job.empty()) {
      context_.AddMetadata(kJobKey, job);
    }
  }

  ~ClientStream() override {
    Cancel();
    if (Started()) {
      Finish().IgnoreError();  // gRPC demands it of every call
    }
  }

  absl::StatusOr<IncomingFrame> Read() override {
    grpc::ByteBuffer message;
    if (GetCall().Read(&message)) {
      return FromByteBuffer(message);
    }
    const absl::Status status = Finish();
    if (status.ok()) {
      return absl::OutOfRangeError(address_ + ": end of the stream");
    }
    return absl::Status(status.code(), address_ + ": " + std::string(status.message()));
  }

  absl::Status Write(OutgoingFrame frame) override {
    grpc::ByteBuffer message;
    ToByteBuffer(std::move(frame), message);
    if (!GetCall().Write(message)) {
      return absl::UnavailableError(address_ + ": the stream is broken");  // Read says why
    }
    return absl::OkStatus();
  }

  void CloseWrites() override { GetCall().WritesDone(); }

  void Cancel() override {
    cancelled_ = true;
    context_.TryCancel();
  }

  [[nodiscard]] bool Cancelled() override { return cancelled_; }

 private:
  bool Started() {
    MutexLock lock(mutex_);
    return call_ != nullptr;
  }

  // The constructor of a call waits for the connection, so it runs in the first use.
  Call& GetCall() {
    MutexLock lock(mutex_);
    if (call_ == nullptr) {
      call_.reset(CallFactory::Create(channel_.get(), method_, &context_));
    }
    return *call_;
  }

  // Only after the last Read: both receive the initial metadata, and gRPC allows that once.
  absl::Status Finish() {
    MutexLock lock(mutex_);
    if (!final_status_.has_value()) {
      final_status_ = FromGrpc(call_->Finish());
    }
    return *final_status_;
  }

  // Constant after construction.
  const std::string address_;
  const std::string method_name_;
  const std::shared_ptr<grpc::Channel> channel_;
  const grpc::internal::RpcMethod method_{method_name_.c_str(),
                                          grpc::internal::RpcMethod::BIDI_STREAMING};

  grpc::ClientContext context_;  // used under gRPC's own locks
  std::atomic<bool> cancelled_ = false;

  // Guarded.
  Mutex mutex_;
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);  // set once
  std::optional<absl::Status> final_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FrameStream> OpenFrameStream(const std::string& address,
                                             const std::string& method,
                                             std::uint64_t max_message_bytes,
                                             const Liveness& liveness,
                                             const std::string& job,
                                             const ChannelSecurity* security) {
  return std::make_unique<ClientStream>(
      address, method, max_message_bytes, liveness, job, security);
}

}  // namespace adamant::rpc
