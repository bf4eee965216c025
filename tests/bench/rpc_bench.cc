// How much of raw TCP's speed a stream of frames reaches on loopback.
//
//   build/release/bench/rpc_bench --benchmark_repetitions=5
//
// 1 MB payloads, eight in flight, each acknowledged by a small message; client and server are
// threads of this process, so they share its malloc settings and both count as CPU time.

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "services/common/rpc/frame.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tune_malloc.h"

namespace adamant {
namespace {

constexpr std::size_t kPayloadBytes = std::size_t{1} << 20;
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{16} << 20;
constexpr int kWindow = 8;
constexpr char kMethod[] = "/adamant.bench/Stream";

// Acknowledges every frame; reads the first byte of every chunk, in place.
absl::Status Acknowledge(rpc::FrameStream& stream) {
  while (true) {
    const auto frame = stream.Read();
    if (!frame.ok()) {
      return absl::OkStatus();
    }
    for (const auto& chunk : frame->chunks()) {
      benchmark::DoNotOptimize(chunk[0]);
    }
    if (absl::Status status = stream.Write({"ok", {}}); !status.ok()) {
      return status;
    }
  }
}

void Report(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPayloadBytes));
}

void FrameStreamPush(benchmark::State& state) {
  rpc::ServerOptions options;
  options.max_message_bytes = kMaxMessageBytes;
  const auto server = rpc::StartServer(options, {}, {{kMethod, Acknowledge}});
  const auto stream = rpc::OpenFrameStream((*server)->address(), kMethod, kMaxMessageBytes);
  const auto payload = std::make_shared<const std::vector<std::byte>>(kPayloadBytes);
  int in_flight = 0;
  for (auto _ : state) {
    if (in_flight == kWindow) {
      stream->Read().status().IgnoreError();
      --in_flight;
    }
    if (!stream->Write({"push", {{*payload, payload}}}).ok()) {
      state.SkipWithError("the stream broke");
      break;
    }
    ++in_flight;
  }
  Report(state);
}

bool ReadAll(int file, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = recv(file, out.data(), out.size(), 0);
    if (got <= 0) {
      return false;
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool WriteAll(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = send(file, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return true;
}

// Two ends of a TCP connection on loopback.
std::pair<int, int> Connect() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, generic, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &size) != 0 || connect(client, generic, size) != 0) {
    std::abort();
  }
  const int server = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return {client, server};
}

void RawTcpPush(benchmark::State& state) {
  const auto [client, server] = Connect();
  std::jthread receiver([end = server] {
    std::vector<std::byte> buffer(kPayloadBytes);
    while (ReadAll(end, buffer) && WriteAll(end, std::span(buffer).first(16))) {
    }
  });
  const std::vector<std::byte> payload(kPayloadBytes);
  std::vector<std::byte> reply(16);
  int in_flight = 0;
  for (auto _ : state) {
    if (in_flight == kWindow) {
      ReadAll(client, reply);
      --in_flight;
    }
    WriteAll(client, payload);
    ++in_flight;
  }
  shutdown(client, SHUT_RDWR);
  receiver = {};
  close(client);
  close(server);
  Report(state);
}

BENCHMARK(RawTcpPush)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(FrameStreamPush)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace
}  // namespace adamant

int main(int argc, char** argv) {
  adamant::rpc::TuneMalloc();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
