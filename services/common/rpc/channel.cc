#include "services/common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <limits>

namespace adamant::rpc {
namespace {

// A fixed window that covers the frames in flight is faster on a local network than the window
// that gRPC estimates from its bandwidth probes: docs/bench/rpc.md.
constexpr int kLookaheadBytes = 16 << 20;

// A connection carries one stream, so nothing waits behind a long HTTP/2 frame; the default of 16
// KB costs half as much CPU again.
constexpr int kMaxHttp2FrameBytes = 4 << 20;

// A peer whose machine vanished is noticed within half a minute.
constexpr int kKeepaliveTimeMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kLeastPingIntervalMs = 10'000;

int AsInt(std::uint64_t bytes) {
  return static_cast<int>(
      std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(std::numeric_limits<int>::max())));
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          std::uint64_t max_message_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(AsInt(max_message_bytes));
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxHttp2FrameBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Callers retry with their own backoff; gRPC's would keep copies of what was sent.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Members talk to each other directly.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void ConfigureServer(grpc::ServerBuilder& builder, std::uint64_t max_message_bytes) {
  builder.SetMaxReceiveMessageSize(AsInt(max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // Otherwise two servers could listen on one port and share its connections at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxHttp2FrameBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
}

}  // namespace adamant::rpc
