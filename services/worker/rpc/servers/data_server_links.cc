#include "services/worker/rpc/servers/data_server_links.h"

#include <cstdint>
#include <string>
#include <utility>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/rng.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/security/peer_identity.h"

namespace adamant::worker {

DataServerLinks::DataServerLinks(const WorkerIdentity& identity,
                                 Intake& intake,
                                 DataServerHandlers handlers)
    : identity_(identity), intake_(intake), handlers_(std::move(handlers)), drained_(intake) {}

void DataServerLinks::Update(const protocol::Membership& view) {
  const auto on_removed = [this](ServerSlot server) {
    handlers_.on_removed(server);
    drained_.Remove(server);
  };
  streams_.Update(ServersOf(view, protocol::Role::kDataServer),
                  on_removed,
                  [this](const ServerAddress& place) { return Open(place); });
}

void DataServerLinks::Send(ServerSlot server, rpc::OutgoingFrame frame) {
  if (Stream* const stream = streams_.Find(server); stream != nullptr) {
    stream->link->Send(std::move(frame));
  }
}

void DataServerLinks::KeepAlive(bool controller_heard) {
  v1::WorkRequest request;
  request.mutable_keep_alive()->set_controller_heard(controller_heard);
  streams_.ForEach([&](Stream& stream) {
    if (stream.link->Idle()) {
      stream.link->Send({.header = request.SerializeAsString(), .payload = {}});
    }
  });
}

LinkOptions DataServerLinks::OptionsFor(const ServerAddress& place) const {
  v1::WorkRequest request;
  v1::WorkHello& hello = *request.mutable_hello();
  Introduce(identity_, protocol::kWorkFormatVersion, hello);
  hello.set_window(static_cast<std::uint32_t>(intake_.window()));
  const std::uint64_t batch_bytes = intake_.format().batch_size * intake_.format().example_bytes;
  return {.address = place.address,
          .method = "/adamant.v1.DataServer/Work",
          .job = std::to_string(identity_.job.job_uid),
          .security = identity_.security.To(security::Role::kDataServer, place.slot),
          .max_message_bytes = batch_bytes + kHeaderRoom,
          .hello = request.SerializeAsString(),
          .seed = MixSeed(identity_.incarnation, identity_.slot, place.slot)};
}

std::unique_ptr<DataServerLinks::Stream> DataServerLinks::Open(const ServerAddress& place) {
  auto stream = std::make_unique<Stream>(place.slot, intake_, drained_, handlers_.work);
  WorkReceiver& receiver = stream->receiver;
  LinkHandlers handlers;
  handlers.on_hello = [this, &receiver](const rpc::IncomingFrame& frame) {
    const absl::Status status = receiver.OnHello(frame);
    if (absl::IsInvalidArgument(status)) {
      handlers_.on_misfit(status);
    }
    return status;
  };
  handlers.on_change = [this, server = place.slot, &receiver](bool connected) {
    receiver.OnChange(connected);
    handlers_.on_change(server, connected);
  };
  handlers.on_frame = [&receiver](const rpc::IncomingFrame& frame) {
    return receiver.OnFrame(frame);
  };
  stream->link = std::make_unique<Link>(OptionsFor(place), std::move(handlers));
  return stream;
}

}  // namespace adamant::worker
