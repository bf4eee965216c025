#include "services/parameter_server/rpc/peers/deliver.h"

#include <string>
#include <utility>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/codec/buckets.h"
#include "services/common/protocol/format_versions.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/messages/message_batch.h"

namespace adamant::parameter_server {
namespace {

std::string Describe(const ServerId& server) {
  return "parameter server " + std::to_string(server.slot) + ", incarnation " +
         std::to_string(server.incarnation);
}

// Why the peer is refused; empty when it is not.
std::string Refusal(const v1::ReplicationHello& hello, const ParameterServer& core) {
  if (hello.format_version() != protocol::kPeerFormatVersion) {
    return "this server speaks replication format version " +
           std::to_string(protocol::kPeerFormatVersion) + ", its peer version " +
           std::to_string(hello.format_version());
  }
  if (hello.job_uid() != core.options().job_uid) {
    return "this server is not of its peer's job, " + std::to_string(hello.job_uid());
  }
  if (codec::Decode(hello.to()) != core.options().self) {
    return "this is " + Describe(core.options().self) + ", not " +
           Describe(codec::Decode(hello.to()));
  }
  if (hello.from().slot() == core.options().self.slot) {
    return "this server has the same slot as its peer";
  }
  return "";
}

// True when the peer was let in.
absl::StatusOr<bool> Greet(CoreGate& gate,
                           const service::MemberGenerations& members,
                           rpc::FrameStream& stream,
                           ServerId& from) {
  ADAMANT_ASSIGN_OR_RETURN(const rpc::IncomingFrame frame, stream.Read());
  v1::ReplicationHello hello;
  if (!hello.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InvalidArgumentError("the first frame of a stream is no ReplicationHello");
  }
  from = codec::Decode(hello.from());
  ADAMANT_RETURN_IF_ERROR(members.CheckHello(stream.peer(), from.slot, from.incarnation));
  v1::ReplicationHelloReply reply;
  {
    const CoreGate::Pass core = gate.Enter();
    if (!core) {
      return GateClosed();
    }
    reply.set_refused(Refusal(hello, *core));
  }
  ADAMANT_RETURN_IF_ERROR(stream.Write({.header = reply.SerializeAsString(), .payload = {}}));
  return reply.refused().empty();
}

absl::Status Receive(CoreGate& gate,
                     const PeerMetrics& metrics,
                     const ServerId& from,
                     rpc::IncomingFrame frame) {
  const CoreGate::Pass core = gate.Enter();
  if (!core) {
    return GateClosed();
  }
  metrics.received_bytes.Increment(
      static_cast<double>(frame.header().size() + frame.payload_bytes()));
  ADAMANT_ASSIGN_OR_RETURN(
      std::vector<PeerMessage> messages,
      DecodeMessageBatch(std::move(frame), {core->layout(), core->options().writers}));
  for (PeerMessage& message : messages) {
    metrics.received[message.kind.index()].Increment();
    core->OnPeerMessage(from, std::move(message));
  }
  return absl::OkStatus();
}

}  // namespace

std::string JobOfDeliver(std::string_view header) {
  v1::ReplicationHello hello;
  hello.ParseFromArray(header.data(), static_cast<int>(header.size()));
  return std::to_string(hello.job_uid());
}

absl::Status ServeDeliver(CoreGate& gate,
                          const service::MemberGenerations& members,
                          const PeerMetrics& metrics,
                          rpc::FrameStream& stream) {
  ServerId from;
  ADAMANT_ASSIGN_OR_RETURN(const bool welcome, Greet(gate, members, stream, from));
  while (welcome) {
    auto frame = stream.Read();
    if (absl::IsOutOfRange(frame.status())) {
      break;
    }
    ADAMANT_RETURN_IF_ERROR(frame.status());
    const absl::Status status = Receive(gate, metrics, from, *std::move(frame));
    if (absl::IsInvalidArgument(status)) {
      LogWarning("hung up on a peer",
                 {{"peer", Describe(from)}, {"why", std::string(status.message())}});
    }
    ADAMANT_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace adamant::parameter_server
