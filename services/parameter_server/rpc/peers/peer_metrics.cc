#include "services/parameter_server/rpc/peers/peer_metrics.h"

#include <array>
#include <string_view>
#include <variant>

#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {
namespace {

// In the order of PeerMessage::kind.
constexpr std::array<std::string_view, 8> kKinds = {"prepare",
                                                    "prepare_ack",
                                                    "beacon",
                                                    "beacon_answer",
                                                    "released",
                                                    "copy_begin",
                                                    "copy_part",
                                                    "copy_ack"};
static_assert(std::variant_size_v<decltype(PeerMessage::kind)> == kKinds.size());

}  // namespace

PeerMetrics::PeerMetrics(metrics::Registry& registry)
    : sent_bytes(registry.AddCounter("adamant_parameter_server_peer_sent_bytes_total",
                                     "Bytes sent to other parameter servers.")),
      received_bytes(registry.AddCounter("adamant_parameter_server_peer_received_bytes_total",
                                         "Bytes received from other parameter servers.")) {
  for (const std::string_view kind : kKinds) {
    sent.push_back(registry.AddCounter("adamant_parameter_server_peer_sent_messages_total",
                                       "Messages sent to other parameter servers.",
                                       {{"kind", kind}}));
    received.push_back(registry.AddCounter("adamant_parameter_server_peer_received_messages_total",
                                           "Messages received from other parameter servers.",
                                           {{"kind", kind}}));
  }
}

}  // namespace adamant::parameter_server
