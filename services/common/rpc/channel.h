#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "services/common/rpc/frame.h"

namespace grpc {
class Channel;
class ServerBuilder;
}  // namespace grpc

namespace adamant::rpc {

struct ChannelSecurity;
struct ServerOptions;

/// A channel with a connection of its own (others to the same address do not share it, so that they
/// cannot block each other), made when first used. Every channel of the project comes from here.
/// `security`: null: plain text, as to a Unix socket; not kept.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address,
                                          std::uint64_t max_message_bytes,
                                          const Liveness& liveness = {},
                                          const ChannelSecurity* security = nullptr);

/// The server's half of NewChannel's settings, and what bounds the cost of strangers.
void ConfigureServer(grpc::ServerBuilder& builder, const ServerOptions& options);

}  // namespace adamant::rpc
