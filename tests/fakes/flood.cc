#include "tests/fakes/flood.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "services/common/rpc/channel.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::fakes {
namespace {

constexpr std::chrono::seconds kLongest{30};

using Stub = grpc::GenericStub;

// Waits for what was begun; false: it has failed.
bool Done(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

bool IsTaken(const Flood& flood, const grpc::Slice& message) {
  Stub stub(rpc::NewChannel(flood.address, 1024));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLongest);
  if (flood.job) {
    context.AddMetadata(rpc::kJobKey, *flood.job);
  }
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, flood.method, &queue);
  call->StartCall(nullptr);
  grpc::Status status(grpc::StatusCode::UNAVAILABLE, "not connected");
  if (Done(queue)) {
    call->Write(grpc::ByteBuffer(&message, 1), nullptr);
    if (Done(queue)) {
      call->WritesDone(nullptr);
      Done(queue);
    }
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);  // without which the status of a call with an answer never comes
    Done(queue);
  }
  call->Finish(&status, nullptr);
  Done(queue);
  queue.Shutdown();
  while (Done(queue)) {
  }
  return status.ok();
}

}  // namespace

std::size_t Run(const Flood& flood) {
  const grpc::Slice message(std::string(flood.bytes, '\0'));
  std::atomic<std::size_t> taken = 0;
  std::vector<std::jthread> streams;
  for (std::size_t i = 0; i < flood.streams; ++i) {
    streams.emplace_back([&] { taken += IsTaken(flood, message) ? 1 : 0; });
  }
  streams.clear();
  return taken;
}

std::uint64_t PeakBytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (std::uint64_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes) {
      return kilobytes << 10;
    }
  }
  return 0;
}

}  // namespace adamant::fakes
