#include "services/common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <limits>

#include "services/common/base/system/listen.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/tls/channel_security.h"

namespace adamant::rpc {
namespace {

// A fixed window that covers the frames in flight is faster on a local network than the window
// that gRPC estimates from its bandwidth probes: docs/bench/rpc.md.
constexpr int kLookaheadBytes = 16 << 20;

// A connection carries one stream, so nothing waits behind a long HTTP/2 frame; the default of 16
// KB costs half as much CPU again.
constexpr int kMaxHttp2FrameBytes = 4 << 20;

// Clients may ask that often (Liveness::ask_after).
constexpr int kLeastPingIntervalMs = 500;

// A client of ours has one stream on a connection, or a few calls one after another.
constexpr int kMaxStreamsOfConnection = 16;

// For a connection to become one of HTTP/2, and for one without streams.
constexpr int kHandshakeTimeMs = 5'000;
constexpr int kIdleTimeMs = 30'000;

// Of a server for short messages only: what arrives of a stream before anybody reads it.
constexpr int kLookaheadOfSmall = 64 << 10;

int AsInt(std::uint64_t value) {
  return static_cast<int>(
      std::min<std::uint64_t>(value, static_cast<std::uint64_t>(std::numeric_limits<int>::max())));
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          std::uint64_t max_message_bytes,
                                          const Liveness& liveness,
                                          const ChannelSecurity* security) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(AsInt(max_message_bytes));
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxHttp2FrameBytes);
  // Keepalive also sets TCP_USER_TIMEOUT, for bytes that the peer's system does not acknowledge.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, AsInt(liveness.ask_after.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, AsInt(liveness.give_up_after.count()));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, AsInt(liveness.connect.count()));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Callers retry with their own backoff; gRPC's would keep copies of what was sent.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Members talk to each other directly.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  const bool is_plain = security == nullptr || IsUnixSocket(address);
  return grpc::CreateCustomChannel(
      address,
      is_plain ? grpc::InsecureChannelCredentials() : MakeChannelCredentials(*security),
      arguments);
}

void ConfigureServer(grpc::ServerBuilder& builder, const ServerOptions& options) {
  builder.SetMaxReceiveMessageSize(AsInt(options.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // Otherwise two servers could listen on one port and share its connections at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  if (options.max_memory_bytes > 0) {
    builder.SetResourceQuota(grpc::ResourceQuota(options.address).Resize(options.max_memory_bytes));
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadOfSmall);
  } else {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxHttp2FrameBytes);
  }
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsOfConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleTimeMs);
  const Liveness liveness;
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, AsInt(liveness.ask_after.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, AsInt(liveness.give_up_after.count()));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
}

}  // namespace adamant::rpc
