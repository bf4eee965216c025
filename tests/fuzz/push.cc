// What workers send to a parameter server, and what its core does with that: each piece is a frame.

#include <memory>
#include <optional>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/storage/memory_store.h"
#include "services/parameter_server/rpc/messages/frame_codec.h"
#include "services/worker/rpc/message_to_frame.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/idle_driver.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

using parameter_server::Configuration;
using parameter_server::ParameterServer;
using parameter_server::Push;
using parameter_server::PushOutcome;
using parameter_server::ShardAck;
using parameter_server::ShardUpdate;
using parameter_server::UpdateKind;
using parameter_server::WorkerId;

constexpr WorkerId kWriter{.slot = 1, .incarnation = 1};

/// Alone in its job, primary of both buckets.
class Server {
 public:
  Server() : core_(SmallServer(), store_, clock_, driver_) {
    Configuration configuration{.version = 1,
                                .generation = 1,
                                .primary = core_.options().self,
                                .replicas = {core_.options().self}};
    bool ready = core_.ReadStored().ok();
    for (const bool created : {false, true}) {
      configuration.created = created;
      core_.SetConfigurations(std::vector(core_.layout().buckets(), configuration), {});
      ready = ready && core_.DoStorage().ok();
    }
    ADAMANT_CHECK(ready && core_.Admit(kWriter).ok(), "the server begins");
  }

  bool Handle(std::string_view bytes) {
    auto frame = FrameOf(bytes);
    v1::ExchangeRequest request;
    if (!frame.ok() || !request.ParseFromString(std::string(frame->header()))) {
      return false;
    }
    if (request.has_push()) {
      return HandlePush(request.push(), *std::move(frame));
    }
    if (request.has_fetch()) {
      const auto& wanted = request.fetch().shards();
      return core_
          .Fetch(&kWriter,
                 std::vector<ShardId>(wanted.begin(), wanted.end()),
                 request.fetch().snapshot())
          .ok();
    }
    const auto& asked = request.flush().shards();
    core_.RequestFlush(kWriter, std::vector<ShardId>(asked.begin(), asked.end()));
    return request.has_flush() && core_.Flush().ok();
  }

 private:
  bool HandlePush(const v1::Push& header, rpc::IncomingFrame frame) {
    Push push{.writer = kWriter};
    if (!DecodePush(header, rpc::JoinPayload(std::move(frame)), core_.layout(), push)) {
      return false;
    }
    std::optional<std::vector<ShardAck>> answer;
    core_.Submit(push, [&](std::vector<ShardAck> acks) { answer = std::move(acks); });
    core_.ApplyCommitted();
    ADAMANT_CHECK(core_.DoStorage().ok(), "memory takes all");
    ADAMANT_CHECK(answer && answer->size() == push.updates.size(), "each update is answered");
    for (const ShardAck& ack : *answer) {
      if (ack.outcome != PushOutcome::kApplied) {
        return false;
      }
    }
    return true;
  }

  storage::MemoryStore store_;
  FakeClock clock_;
  IdleDriver driver_;
  ParameterServer core_;
};

std::string Pushed(const worker::PushPayload& payload) {
  return BytesOf(worker::FrameOf(
      worker::PushMessage{.request = 1, .terms = {.job_examples = 64, .examples = 32}}, payload));
}

}  // namespace

std::vector<std::string> Seeds() {
  static const std::vector<float> numbers(12, 0.25F);
  const std::span<const float> values(numbers);
  worker::PushPayload dense;
  dense.updates = {{.shard = 0,
                    .configuration_version = 1,
                    .sequence = 1,
                    .kind = UpdateKind::kGradient,
                    .values = values},
                   {.shard = 1,
                    .configuration_version = 1,
                    .sequence = 1,
                    .kind = UpdateKind::kWeightChange,
                    .values = values.first(4)}};
  worker::PushPayload product;
  product.operands = {{.tensor = 0,
                       .rows = 2,
                       .inputs = 3,
                       .outputs = 4,
                       .activations = {values.first(6)},
                       .errors = {values.first(8)}}};
  product.updates = {
      {.shard = 0, .configuration_version = 1, .sequence = 1, .kind = UpdateKind::kOuterProduct}};
  const std::string fetch =
      BytesOf(worker::FrameOf(worker::FetchMessage{.request = 2, .shards = {0, 1}}));
  const std::string flush =
      BytesOf(worker::FrameOf(worker::FlushMessage{.request = 3, .shards = {0, 1}}));
  return {Join({Pushed(dense)}), Join({Pushed(product)}), Join({Pushed(dense), fetch, flush})};
}

bool Try(std::string_view input) {
  Server server;
  bool accepted = false;
  for (const std::string& piece : Split(input)) {
    accepted = server.Handle(piece);
  }
  return accepted;
}

}  // namespace adamant::fuzz
