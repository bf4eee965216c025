// What parameter servers send to each other, and what the core of a secondary does with that: each
// piece is a frame.

#include "services/parameter_server/rpc/messages/message_batch.h"

#include <memory>

#include "services/common/base/check.h"
#include "services/common/storage/memory_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/idle_driver.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

namespace ps = parameter_server;

constexpr ps::ServerId kPrimary{.slot = 1, .incarnation = 1};

/// A secondary of bucket 0, a learner of bucket 1.
class Server {
 public:
  Server() : core_(SmallServer(), store_, clock_, driver_) {
    ps::Configuration configuration{
        .version = 1, .generation = 1, .primary = kPrimary, .replicas = {kPrimary}};
    configuration.created = true;
    std::vector<ps::Configuration> both(core_.layout().buckets(), configuration);
    both[0].replicas.push_back(core_.options().self);
    both[1].learner = core_.options().self;
    bool ready = core_.ReadStored().ok();
    core_.SetConfigurations(both, {});
    ready = ready && core_.DoStorage().ok();
    ADAMANT_CHECK(ready, "the server begins");
    core_.OnPeerConnected(kPrimary);
  }

  bool Handle(std::string_view bytes) {
    auto frame = FrameOf(bytes);
    if (!frame.ok()) {
      return false;
    }
    auto messages = ps::DecodeMessageBatch(
        *std::move(frame), {.layout = core_.layout(), .writers = core_.options().writers});
    if (!messages.ok()) {
      return false;
    }
    for (ps::PeerMessage& message : *messages) {
      core_.OnPeerMessage(kPrimary, std::move(message));
    }
    core_.ApplyCommitted();
    core_.Tick();
    return core_.DoStorage().ok();
  }

 private:
  storage::MemoryStore store_;
  FakeClock clock_;
  IdleDriver driver_;
  ps::ParameterServer core_;
};

std::string Sent(const std::vector<ps::PeerMessage>& messages) {
  return BytesOf(ps::EncodeMessageBatch(messages));
}

ps::EntryPtr SomeEntry(BucketId bucket, const ShardLayout& layout) {
  static const std::vector<float> numbers(12, 0.25F);
  const std::span<const float> values(numbers);
  const auto shared =
      std::make_shared<const ps::SharedOperands>(ps::SharedOperands{{.tensor = 0,
                                                                     .rows = 2,
                                                                     .inputs = 3,
                                                                     .outputs = 4,
                                                                     .activations = values.first(6),
                                                                     .errors = values.first(8)}});
  const auto entry = std::make_shared<ps::Entry>();
  entry->lsn = 1;
  entry->origin = 1;
  for (const Shard& shard : layout.shards()) {
    if (shard.bucket == bucket) {
      ps::LoggedUpdate update{
          .shard = shard.id, .writer = {.slot = 1, .incarnation = 1}, .sequence = 1};
      if (shard.tensor == 0) {
        update.kind = ps::UpdateKind::kOuterProduct;
        update.operands = shared;
      } else {
        update.values = values.first(shard.size());
      }
      entry->updates.push_back(update);
    }
  }
  return entry;
}

}  // namespace

std::vector<std::string> Seeds() {
  const ShardLayout layout(SmallLayer(), 2);
  const std::vector<ps::ServerId> both = {kPrimary, {.slot = 0, .incarnation = 1}};
  std::vector<ps::PeerMessage> messages;
  for (const BucketId bucket : {0, 1}) {
    const auto add = [&](auto kind) {
      messages.push_back({.bucket = bucket, .configuration_version = 1, .kind = std::move(kind)});
    };
    add(ps::Beacon{.generation = 1, .primary = kPrimary, .replicas = both});
    add(ps::CopyBegin{.copy = 1, .base = 0, .generation = 1, .parts = 2});
    add(ps::Prepare{.base = 0, .committed = 1, .entry = SomeEntry(bucket, layout)});
    add(ps::PrepareAck{.acked = 1});
    add(ps::BeaconAnswer{.acked = 1});
    add(ps::CopyAck{.copy = 1, .index = 0});
    add(ps::Released{});
  }
  for (const Shard& shard : layout.shards()) {
    const auto values = static_cast<std::size_t>(shard.size());
    const std::size_t state = shard.tensor == 0 ? values : 0;
    auto stored = std::make_shared<std::string>(
        checkpoint::EncodeShard({.job_uid = 7, .shard = shard.id, .values = values, .state = state},
                                {.generation = 1,
                                 .values = std::vector<float>(values),
                                 .state = std::vector<float>(state)}));
    checkpoint::SealShard(*stored);
    messages.push_back({.bucket = shard.bucket,
                        .configuration_version = 1,
                        .kind = ps::CopyPart{
                            .copy = 1, .index = 0, .content = ps::CopiedShard{shard.id, stored}}});
  }
  std::vector<std::string> seeds = {Join({Sent(messages)})};
  std::vector<std::string> pieces;
  for (const ps::PeerMessage& message : messages) {
    pieces.push_back(Sent({message}));
    seeds.push_back(Join({pieces.back()}));
  }
  seeds.push_back(Join(pieces));
  return seeds;
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
