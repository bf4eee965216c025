#include "operator/control/message_limits.h"

#include <string>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/rpc/stream_guard.h"

namespace adamant::control {
namespace {

using MessageKind = v1::MemberMessage::KindCase;

constexpr std::uint64_t kNumbersBytes = 1024;                 // a few numbers
constexpr std::uint64_t kTextBytes = std::uint64_t{1} << 20;  // what a process says of itself

std::uint64_t MostBytes(MessageKind kind) {
  switch (kind) {
    case MessageKind::kJoin:
      return rpc::kMostHelloBytes;
    case MessageKind::kEpochEnded:
    case MessageKind::kPartClosed:
    case MessageKind::kWorkerFlushed:
    case MessageKind::kEvaluated:
    case MessageKind::kPushesPaused:
    case MessageKind::kDraining:
    case MessageKind::kLeaving:
      return kNumbersBytes;
    case MessageKind::kFailure:
    case MessageKind::kLoading:
      return kTextBytes;
    default:
      return kMostMessageBytes;
  }
}

}  // namespace

absl::Status CheckBytes(const v1::MemberMessage& message) {
  const std::uint64_t bytes = message.ByteSizeLong();
  const std::uint64_t most = MostBytes(message.kind_case());
  if (bytes <= most) {
    return absl::OkStatus();
  }
  const auto* field = v1::MemberMessage::descriptor()->FindFieldByNumber(message.kind_case());
  return absl::InvalidArgumentError((field != nullptr ? field->name() : "a message") + " of " +
                                    std::to_string(bytes) + " bytes; it has at most " +
                                    std::to_string(most));
}

}  // namespace adamant::control
