#include "services/common/rpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "services/common/base/system/listen.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/door.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/stream_guard.h"

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
                     {{"/adamant.test/Stream", echo},
                      {"/adamant.test/Old", echo, [](auto header) { return std::string(header); }}})
      .value();
}

OutgoingFrame FrameOf(std::size_t bytes, const std::string& header = "") {
  const auto payload = std::make_shared<std::vector<std::byte>>(bytes);
  return {.header = header, .payload = {{*payload, payload}}};
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

TEST(ServerTest, StreamsForNoJobEndUnread) {
  const auto server = StartOwn();
  const auto stream = OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20);
  const absl::Status status = stream->Read().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(ServerTest, AStreamOfAnEarlierStateNamesTheJobInItsHelloAndStays) {
  const auto server = StartOwn();
  const auto stream = OpenFrameStream(server->address(), "/adamant.test/Old", 1 << 20);
  ASSERT_TRUE(stream->Write(FrameOf(1, "mine")).ok());
  EXPECT_EQ(stream->Read()->header(), "1");
  std::this_thread::sleep_for(Door::Limits().most_time + std::chrono::seconds(1));
  ASSERT_TRUE(stream->Write(FrameOf(1 << 20)).ok());
  EXPECT_EQ(stream->Read()->header(), "1048576");
}

TEST(ServerTest, AHelloForAnotherJobOrTooLongAHelloEndsAStreamThatNamesNone) {
  const auto server = StartOwn();
  const auto other = OpenFrameStream(server->address(), "/adamant.test/Old", 1 << 20);
  ASSERT_TRUE(other->Write(FrameOf(1, "other")).ok());
  EXPECT_TRUE(absl::IsUnavailable(other->Read().status()));
  const auto large = OpenFrameStream(server->address(), "/adamant.test/Old", 1 << 20);
  ASSERT_TRUE(large->Write(FrameOf(1100, "mine")).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(large->Read().status()));
}

TEST(ServerTest, FewStreamsThatNameNoJobMayWaitForTheirHello) {
  const auto server = StartOwn();
  std::vector<std::unique_ptr<FrameStream>> streams;
  for (std::size_t i = 0; i <= StreamGuard::Limits().most_unnamed; ++i) {
    streams.push_back(OpenFrameStream(server->address(), "/adamant.test/Old", 1 << 20));
  }
  std::vector<std::jthread> readers;
  std::atomic<int> refused = 0;
  for (const auto& stream : streams) {
    readers.emplace_back([&] { refused += absl::IsUnavailable(stream->Read().status()) ? 1 : 0; });
  }
  readers.clear();
  EXPECT_EQ(refused, 1) << "the others end for want of a hello";
  const auto named =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "mine");
  ASSERT_TRUE(named->Write(FrameOf(1)).ok());
  EXPECT_EQ(named->Read()->header(), "1");
}

// A call of one request and one reply, as generated clients make it. `job` "": names none.
absl::StatusOr<std::string> Call(const std::string& address,
                                 const std::string& method_name,
                                 const std::string& request,
                                 const std::string& job) {
  const auto channel = NewChannel(address, 1 << 20);
  grpc::ClientContext context;
  if (!job.empty()) {
    context.AddMetadata(kJobKey, job);
  }
  const grpc::internal::RpcMethod method(method_name.c_str(),
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const grpc::Slice slice(request);
  grpc::ByteBuffer reply;
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      channel.get(), method, &context, grpc::ByteBuffer(&slice, 1), &reply);
  if (!status.ok()) {
    return FromGrpc(status);
  }
  grpc::Slice bytes;
  EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// A server of the job "mine" with a call that is answered by its request twice.
std::unique_ptr<Server> StartTwice(const std::string& address = "127.0.0.1:0") {
  const auto twice = [](const std::string& request,
                        const Caller& caller) -> absl::StatusOr<std::string> {
    return caller.cancelled() || request == "no"
               ? absl::StatusOr<std::string>(absl::NotFoundError("no"))
               : request + request;
  };
  return StartServer(
             {.address = address, .is_own_job = [](std::string_view job) { return job == "mine"; }},
             {},
             {},
             {{.name = "/adamant.test/Twice", .max_request_bytes = 10, .handler = twice},
              {.name = "/adamant.test/Old",
               .max_request_bytes = 10,
               .handler = twice,
               .job_of = [](auto request) { return std::string(request); }}})
      .value();
}

TEST(ServerTest, UnaryCallsAreAnsweredForTheJob) {
  const auto server = StartTwice();
  EXPECT_EQ(Call(server->address(), "/adamant.test/Twice", "ab", "mine").value_or(""), "abab");
  EXPECT_EQ(Call(server->address(), "/adamant.test/Twice", "", "mine").value_or("?"), "");
  EXPECT_EQ(Call(server->address(), "/adamant.test/Twice", "no", "mine").status(),
            absl::NotFoundError("no"));
  const auto large = Call(server->address(), "/adamant.test/Twice", "12345678901", "mine");
  EXPECT_TRUE(absl::IsInvalidArgument(large.status())) << large.status();
}

TEST(ServerTest, UnaryCallsForAnotherJobOrNoneAreRefused) {
  const auto server = StartTwice();
  for (const std::string job : {"", "other"}) {
    const auto reply = Call(server->address(), "/adamant.test/Twice", "ab", job);
    EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
  }
}

TEST(ServerTest, AUnaryCallOfAnEarlierStateNamesTheJobInItsRequest) {
  const auto server = StartTwice();
  EXPECT_EQ(Call(server->address(), "/adamant.test/Old", "mine", "").value_or(""), "minemine");
  const auto reply = Call(server->address(), "/adamant.test/Old", "other", "");
  EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
}

TEST(ServerTest, HealthOfAJobsServerIsToldToAll) {
  const auto server = StartTwice();
  for (const std::string job : {"", "other"}) {
    const auto reply = Call(server->address(), "/grpc.health.v1.Health/Check", "", job);
    EXPECT_EQ(reply.value_or(""), "\x08\x01") << reply.status();
  }
}

TEST(ServerTest, AStreamOfTheJobOutlivesTheTimeOfStrangers) {
  const auto server = StartOwn();
  const auto stream =
      OpenFrameStream(server->address(), "/adamant.test/Stream", 1 << 20, {}, "mine");
  ASSERT_TRUE(stream->Write(FrameOf(1)).ok());
  ASSERT_EQ(stream->Read()->header(), "1");
  std::this_thread::sleep_for(Door::Limits().most_time + std::chrono::seconds(1));
  ASSERT_TRUE(stream->Write(FrameOf(2)).ok());
  EXPECT_EQ(stream->Read()->header(), "2");
}

TEST(ServerTest, AUnixSocketServesAsAPortDoesAndIsGoneAfterStop) {
  const std::string path = testing::TempDir() + "adamant_server_" + std::to_string(getpid());
  const auto server = StartTwice("unix:" + path);
  EXPECT_EQ(server->address(), "unix:" + path);
  EXPECT_EQ(Call(server->address(), "/adamant.test/Twice", "ab", "mine").value_or(""), "abab");
  EXPECT_TRUE(
      absl::IsUnavailable(Call(server->address(), "/adamant.test/Twice", "ab", "other").status()));
  EXPECT_EQ(Call(server->address(), "/adamant.test/Old", "mine", "").value_or(""), "minemine");
  EXPECT_EQ(Call(server->address(), "/grpc.health.v1.Health/Check", "", "").value_or(""),
            "\x08\x01");
  server->Admit("unix:");  // there is no door
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  server->Stop();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(ServerTest, WhatAKilledServerLeftOfItsUnixSocketIsReplaced) {
  const std::string path = testing::TempDir() + "adamant_left_" + std::to_string(getpid());
  const auto left = Listen("unix:" + path);
  ASSERT_TRUE(left.ok()) << left.status();
  close(left->socket);
  const auto server = StartTwice("unix:" + path);
  EXPECT_EQ(Call(server->address(), "/adamant.test/Twice", "ab", "mine").value_or(""), "abab");
}

TEST(ServerTest, AUnixSocketThatCannotBeMadeIsAClearError) {
  for (const std::string& path : {std::string("/nowhere/a"), "/" + std::string(107, 'x')}) {
    const auto server = Start({.address = "unix:" + path});
    ASSERT_FALSE(server.ok());
    EXPECT_NE(server.status().message().find("cannot listen at unix:" + path),
              std::string_view::npos)
        << server.status();
  }
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
  const auto reply = Call((*server)->address(), "/grpc.health.v1.Health/Check", "", "");
  EXPECT_EQ(reply.value_or(""), "\x08\x01") << reply.status();
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
