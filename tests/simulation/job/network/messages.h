#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/data_server/core/messages.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/updates/messages.h"
#include "services/worker/core/base/messages.h"
#include "services/worker/core/sync/pushes/push_payload.h"

/// What travels between processes: the cores' own messages, and what their edges add.
namespace adamant::simulation {

struct ExchangeHello {
  std::optional<parameter_server::WorkerId> writer;  ///< none: only fetches
  std::uint64_t attempt = 0;                         ///< of the writer
};

struct ExchangeHelloReply {
  bool refused = false;
};

/// A push with its bytes: the sender's memory, until they are copied.
struct PushFrame {
  worker::PushMessage header;
  worker::PushPayload payload;
  std::vector<std::vector<float>> copies;

  /// Copies the bytes and lets go of the sender's memory, as a transport does some time.
  void Copy();
};

struct FetchAnswer {
  worker::FetchReply reply;
  std::vector<parameter_server::ShardValue> values;
};

struct GetRecord {
  std::string key;
};

struct PutRecord {
  std::string key;
  std::uint64_t expected_version = 0;
  std::string value;
};

struct RecordAnswer {
  enum class Outcome { kDone, kConflict, kTryAgain };
  Outcome outcome = Outcome::kTryAgain;
  std::uint64_t version = 0;  ///< 0: absent
  std::string value{};
};

/// First on a stream between two parameter servers, and its answer.
struct PeerHello {
  parameter_server::ServerId from;
  parameter_server::ServerId to;
};
struct PeerHelloReply {};

struct PeerLetter {
  parameter_server::PeerMessage message;
};

using Message = std::variant<controller::MemberMessage,
                             controller::ControllerMessage,
                             data_server::Hello,
                             data_server::Acknowledge,
                             data_server::HandBack,
                             data_server::KeepAlive,
                             data_server::HelloAnswer,
                             data_server::Dispatch,
                             data_server::Acknowledged,
                             data_server::Drained,
                             data_server::EpochClosed,
                             ExchangeHello,
                             ExchangeHelloReply,
                             std::shared_ptr<PushFrame>,
                             worker::FetchMessage,
                             worker::PushReply,
                             FetchAnswer,
                             GetRecord,
                             PutRecord,
                             RecordAnswer,
                             PeerHello,
                             PeerHelloReply,
                             PeerLetter,
                             worker::FlushMessage,
                             worker::FlushReply>;

/// For the history.
std::string NameOf(const Message& message);

}  // namespace adamant::simulation
