#include "services/common/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/rpc/channel.h"
#include "services/common/rpc/status_grpc.h"

namespace adamant::rpc {
namespace {

absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options = {}) {
  return StartServer(
      options, {}, {{"/adamant.test/Stream", [](FrameStream&) { return absl::OkStatus(); }}});
}

TEST(ServerTest, TakenPortIsAClearError) {
  const auto first = Start();
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions options;
  options.address = (*first)->address();
  const auto second = Start(options);
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_NE(second.status().message().find(options.address), std::string_view::npos);
  EXPECT_NE(second.status().message().find("Address already in use"), std::string_view::npos)
      << second.status();
}

TEST(ServerTest, AddressWithoutPortIsAClearError) {
  ServerOptions options;
  options.address = "127.0.0.1";
  const auto server = Start(options);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("127.0.0.1: expected host:port"), std::string_view::npos)
      << server.status();
}

TEST(ServerTest, PortIsFreeAgainAfterStop) {
  auto first = Start();
  ASSERT_TRUE(first.ok()) << first.status();
  ServerOptions options;
  options.address = (*first)->address();
  (*first)->Stop();
  (*first)->Stop();
  first->reset();
  EXPECT_TRUE(Start(options).ok());
}

TEST(ServerTest, UnreachableServerIsUnavailable) {
  auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  server->reset();
  const auto stream = OpenFrameStream(address, "/adamant.test/Stream", 1 << 20);
  EXPECT_TRUE(absl::IsUnavailable(stream->Write({"hello", {}})));
  const absl::Status status = stream->Read().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find(address), std::string_view::npos) << status;
}

TEST(ServerTest, StreamThatWasNeverUsedCanBeDestroyed) {
  OpenFrameStream("127.0.0.1:1", "/adamant.test/Stream", 1 << 20);
}

// A server of the job "mine", whose streams answer with what they read.
std::unique_ptr<Server> StartOwn() {
  const auto echo = [](FrameStream& stream) -> absl::Status {
    while (true) {
      auto frame = stream.Read();
      if (!frame.ok()) {
        return absl::IsOutOfRange(frame.status()) ? absl::OkStatus() : frame.status();
      }
      stream.Write({std::to_string(frame->payload_bytes()), {}}).IgnoreError();
    }
  };
  return StartServer({.is_own_job = [](std::string_view job) { return job == "mine"; }},
                     {},
                     {{"/adamant.test/Stream", echo}})
      .value();
}

OutgoingFrame FrameOf(std::size_t bytes) {
  const auto payload = std::make_shared<std::vector<std::byte>>(bytes);
  return {.header = "", .payload = {{*payload, payload}}};
}

TEST(ServerTest, AStreamBeginsWithASmallMessageAndGoesOnWithLargeOnes) {
  const auto server = StartOwn();
  const auto stream =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "mine");
  ASSERT_TRUE(stream->Write(FrameOf(1000)).ok());
  EXPECT_EQ(stream->Read()->header(), "1000");
  ASSERT_TRUE(stream->Write(FrameOf(1 << 20)).ok());
  EXPECT_EQ(stream->Read()->header(), "1048576");
  const auto other =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "mine");
  ASSERT_TRUE(other->Write(FrameOf(1100)).ok());
  const absl::Status status = other->Read().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("a hello has at most 1024"), std::string_view::npos) << status;
}

TEST(ServerTest, StreamsForOtherJobsEndUnread) {
  const auto server = StartOwn();
  const auto stream =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "other");
  const absl::Status status = stream->Read().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message().find("mine"), std::string_view::npos) << status;
}

TEST(ServerTest, AStreamWithoutHelloIsEnded) {
  const auto server = StartOwn();
  const auto stream =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "mine");
  EXPECT_TRUE(absl::IsCancelled(stream->Read().status()));
}

TEST(ServerTest, UnknownMethodIsUnimplemented) {
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stream = OpenFrameStream((*server)->address(), "/adamant.test/None", 1 << 20);
  EXPECT_TRUE(absl::IsUnimplemented(stream->Read().status()));
}

// grpc.health.v1.HealthCheckResponse{status: SERVING} on the wire.
TEST(ServerTest, HealthServiceReportsServing) {
  const auto server = Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = NewChannel((*server)->address(), 1 << 20);
  grpc::ClientContext context;
  const grpc::internal::RpcMethod method("/grpc.health.v1.Health/Check",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  grpc::ByteBuffer reply;
  const grpc::Slice empty("");
  const grpc::ByteBuffer empty_request(&empty, 1);
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      channel.get(), method, &context, empty_request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size()), "\x08\x01");
}

TEST(StatusGrpcTest, EveryCodeSurvivesTheRoundTrip) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace adamant::rpc
