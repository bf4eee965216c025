#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <utility>
#include <vector>

#include "services/common/rpc/channel.h"
#include "services/common/rpc/server.h"
#include "tests/conformance/frame_stream_suite.h"

namespace adamant::conformance {
namespace {

constexpr char kMethod[] = "/adamant.test/Stream";

class GrpcTransport final : public FrameTransport {
 public:
  void Serve(rpc::FrameHandler handler, std::uint64_t max_message_bytes) override {
    rpc::ServerOptions options;
    options.max_message_bytes = max_message_bytes;
    auto server = rpc::StartServer(options, {}, {{kMethod, std::move(handler)}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::unique_ptr<rpc::FrameStream> Connect() override {
    return rpc::OpenFrameStream(server_->address(), kMethod, std::uint64_t{16} << 20);
  }

  void StopServer() override { server_->Stop(); }

  void SendRaw(const std::string& message) override {
    const auto channel = rpc::NewChannel(server_->address(), 1 << 20);
    grpc::ClientContext context;
    const grpc::internal::RpcMethod method(kMethod, grpc::internal::RpcMethod::BIDI_STREAMING);
    using Factory = grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>;
    const std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> call(
        Factory::Create(channel.get(), method, &context));
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1));
    call->WritesDone();
    call->Finish();
  }

 private:
  std::unique_ptr<rpc::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(Grpc,
                         FrameStreamSuite,
                         testing::Values(FrameTransportFactory{
                             "gRPC", [] { return std::make_unique<GrpcTransport>(); }}));

}  // namespace
}  // namespace adamant::conformance
