#include "services/worker/rpc/servers/parameter_server_links.h"

#include <string>
#include <utility>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/rng.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/security/peer_identity.h"

namespace adamant::worker {

ParameterServerLinks::ParameterServerLinks(const WorkerIdentity& identity,
                                           std::uint64_t max_message_bytes,
                                           ParameterServerHandlers handlers)
    : identity_(identity), max_message_bytes_(max_message_bytes), handlers_(std::move(handlers)) {}

void ParameterServerLinks::Update(const protocol::Membership& view) {
  links_.Update(ServersOf(view, protocol::Role::kParameterServer),
                handlers_.on_removed,
                [this](const ServerAddress& place) { return Open(place); });
}

void ParameterServerLinks::Send(ServerSlot server, rpc::OutgoingFrame frame) {
  if (Link* const link = links_.Find(server); link != nullptr) {
    link->Send(std::move(frame));
  }
}

std::unique_ptr<Link> ParameterServerLinks::Open(const ServerAddress& place) {
  v1::ExchangeRequest request;
  Introduce(identity_, protocol::kExchangeFormatVersion, *request.mutable_hello());
  LinkOptions options = {
      .address = place.address,
      .method = "/adamant.v1.ParameterServer/Exchange",
      .job = std::to_string(identity_.job.job_uid),
      .security = identity_.security.To(security::Role::kParameterServer, place.slot),
      .max_message_bytes = max_message_bytes_ + kHeaderRoom,
      .hello = request.SerializeAsString(),
      .seed = MixSeed(identity_.incarnation, identity_.slot, place.slot)};
  LinkHandlers handlers;
  handlers.on_hello = [this](const rpc::IncomingFrame& frame) { return OnHello(frame); };
  handlers.on_change = [this, server = place.slot](bool connected) {
    handlers_.on_change(server, connected);
  };
  handlers.on_frame = handlers_.on_reply;
  return std::make_unique<Link>(std::move(options), std::move(handlers));
}

absl::Status ParameterServerLinks::OnHello(const rpc::IncomingFrame& frame) const {
  v1::ExchangeReply reply;
  if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::DataLossError("the answer to the hello is no ExchangeReply");
  }
  if (reply.hello().stale()) {
    handlers_.on_stale();
  }
  return reply.hello().refused().empty()
             ? absl::OkStatus()
             : absl::FailedPreconditionError("refused: " + reply.hello().refused());
}

}  // namespace adamant::worker
