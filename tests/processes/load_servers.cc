#include "tests/processes/load_servers.h"

#include <span>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/rng.h"

namespace adamant::processes {
namespace {

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{8} << 20;

absl::Status CheckHello(const rpc::IncomingFrame& frame) {
  v1::ExchangeReply reply;
  if (!reply.ParseFromString(std::string(frame.header()))) {
    return absl::DataLossError("the answer to the hello is no ExchangeReply");
  }
  return reply.hello().refused().empty()
             ? absl::OkStatus()
             : absl::FailedPreconditionError("refused: " + reply.hello().refused());
}

}  // namespace

LoadServers::LoadServers(const Identity& identity, worker::Inbox& inbox, Handlers handlers)
    : identity_(identity), inbox_(inbox), handlers_(std::move(handlers)) {}

bool LoadServers::Update(const protocol::Membership& membership) {
  if (membership.version < version_) {
    return false;
  }
  version_ = membership.version;
  std::map<std::uint32_t, Server> former = std::exchange(servers_, {});
  for (const protocol::Member& member : membership.members) {
    if (member.id.role != protocol::Role::kParameterServer) {
      continue;
    }
    Server& server = servers_[member.id.slot];
    const auto known = former.find(member.id.slot);
    if (known != former.end() && known->second.address == member.address &&
        known->second.incarnation == member.incarnation) {
      server = std::move(known->second);
      former.erase(known);
    } else {
      server.address = member.address;
      server.incarnation = member.incarnation;
      Connect(member.id.slot, server);
    }
  }
  routes_.clear();
  for (const protocol::Configuration& bucket : membership.buckets) {
    routes_.push_back({.server = bucket.primary.slot,
                       .incarnation = bucket.primary.incarnation,
                       .version = bucket.version});
  }
  for (const auto& [slot, server] : former) {
    handlers_.on_lost(slot);
  }
  return true;
}

void LoadServers::Connect(std::uint32_t slot, Server& server) {
  v1::ExchangeRequest request;
  v1::ExchangeHello& hello = *request.mutable_hello();
  hello.set_format_version(1);
  hello.set_job_uid(identity_.job_uid);
  hello.set_worker_slot(identity_.slot);
  hello.set_worker_incarnation(identity_.incarnation);
  worker::LinkHandlers handlers;
  handlers.on_hello = CheckHello;
  handlers.on_change = [this, slot, incarnation = server.incarnation](bool connected) {
    inbox_.Post([this, slot, incarnation, connected] {
      const auto found = servers_.find(slot);
      if (found != servers_.end() && found->second.incarnation == incarnation) {
        OnConnected(slot, connected);
      }
    });
  };
  handlers.on_frame = [this](rpc::IncomingFrame frame) {
    auto shared = std::make_shared<rpc::IncomingFrame>(std::move(frame));
    inbox_.Post([this, shared] { handlers_.on_reply(*shared); });
    return absl::OkStatus();
  };
  server.link = std::make_unique<worker::Link>(
      worker::LinkOptions{.address = server.address,
                          .method = "/adamant.v1.ParameterServer/Exchange",
                          .job = std::to_string(identity_.job_uid),
                          .max_message_bytes = kMaxMessageBytes,
                          .hello = request.SerializeAsString(),
                          .seed = MixSeed(identity_.slot, slot)},
      std::move(handlers));
}

void LoadServers::OnConnected(std::uint32_t slot, bool connected) {
  servers_[slot].connected = connected;
  if (!connected) {
    handlers_.on_lost(slot);
  }
}

std::optional<LoadServers::Route> LoadServers::RouteTo(BucketId bucket) const {
  if (bucket >= routes_.size()) {
    return std::nullopt;
  }
  const auto server = servers_.find(routes_[bucket].server);
  const bool usable = server != servers_.end() && server->second.connected &&
                      server->second.incarnation == routes_[bucket].incarnation;
  return usable ? std::optional(routes_[bucket]) : std::nullopt;
}

void LoadServers::Send(std::uint32_t server,
                       const v1::ExchangeRequest& request,
                       std::vector<float> values) {
  rpc::OutgoingFrame frame{.header = request.SerializeAsString(), .payload = {}};
  if (!values.empty()) {
    const auto lent = std::make_shared<const std::vector<float>>(std::move(values));
    frame.payload.push_back({std::as_bytes(std::span(*lent)), lent});
  }
  servers_.at(server).link->Send(std::move(frame));
}

}  // namespace adamant::processes
