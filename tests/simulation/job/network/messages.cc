#include "tests/simulation/job/network/messages.h"

namespace adamant::simulation {
namespace {

constexpr const char* kMessageNames[] = {"member message",
                                         "controller message",
                                         "Hello",
                                         "Acknowledge",
                                         "HandBack",
                                         "KeepAlive",
                                         "HelloAnswer",
                                         "Dispatch",
                                         "Acknowledged",
                                         "Drained",
                                         "EpochClosed",
                                         "ExchangeHello",
                                         "ExchangeHelloReply",
                                         "Push",
                                         "Fetch",
                                         "PushReply",
                                         "FetchReply",
                                         "GetRecord",
                                         "PutRecord",
                                         "record answer",
                                         "PeerHello",
                                         "PeerHelloReply",
                                         "peer message",
                                         "FlushRequest",
                                         "FlushReply"};
static_assert(std::size(kMessageNames) == std::variant_size_v<Message>);

constexpr const char* kPeerNames[] = {"Prepare",
                                      "PrepareAck",
                                      "Beacon",
                                      "BeaconAnswer",
                                      "Released",
                                      "CopyBegin",
                                      "CopyPart",
                                      "CopyAck"};
static_assert(std::size(kPeerNames) ==
              std::variant_size_v<decltype(parameter_server::PeerMessage::kind)>);

constexpr const char* kMemberNames[] = {"Join",
                                        "Heartbeat",
                                        "BucketsReady",
                                        "EpochEnded",
                                        "PartClosed",
                                        "WorkerFlushed",
                                        "SnapshotTaken",
                                        "Evaluated",
                                        "Failure",
                                        "Leaving",
                                        "StoredBuckets",
                                        "Proposals",
                                        "PushesPaused",
                                        "Draining",
                                        "Loading"};
static_assert(std::size(kMemberNames) == std::variant_size_v<controller::MemberMessage>);

constexpr const char* kControllerNames[] = {"Welcome",
                                            "Membership",
                                            "OpenEpoch",
                                            "CloseEpoch",
                                            "FlushWorker",
                                            "TakeSnapshot",
                                            "Evaluate",
                                            "Stop",
                                            "Refused",
                                            "PausePushes",
                                            "ResumePushes"};
static_assert(std::size(kControllerNames) == std::variant_size_v<controller::ControllerMessage>);

}  // namespace

std::string NameOf(const Message& message) {
  if (const auto* member = std::get_if<controller::MemberMessage>(&message)) {
    return kMemberNames[member->index()];
  }
  if (const auto* control = std::get_if<controller::ControllerMessage>(&message)) {
    return kControllerNames[control->index()];
  }
  if (const auto* letter = std::get_if<PeerLetter>(&message)) {
    return kPeerNames[letter->message.kind.index()];
  }
  return kMessageNames[message.index()];
}

void PushFrame::Copy() {
  if (payload.owner == nullptr) {
    return;
  }
  const auto own = [this](std::span<const float>& values) {
    copies.emplace_back(values.begin(), values.end());
    values = copies.back();
  };
  for (worker::ShardUpdate& update : payload.updates) {
    own(update.values);
  }
  for (worker::PushPayload::Operands& operands : payload.operands) {
    for (auto* pieces : {&operands.activations, &operands.errors}) {
      for (std::span<const float>& piece : *pieces) {
        own(piece);
      }
    }
  }
  payload.owner.reset();
}

}  // namespace adamant::simulation
