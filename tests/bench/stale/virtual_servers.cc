#include "tests/bench/stale/virtual_servers.h"

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "services/common/base/check.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/memory_store.h"

namespace adamant::bench {
namespace {

namespace ps = parameter_server;

constexpr std::uint64_t kEpoch = 1;

ps::ServerId ServerIdAt(std::uint32_t slot) { return {.slot = slot, .incarnation = 1}; }

ps::ParameterServerOptions ServerOptionsOf(const ShardLayout& layout,
                                           const VirtualServersOptions& options,
                                           std::uint32_t slot) {
  return {.job_uid = 1,
          .self = ServerIdAt(slot),
          .writers = options.workers,
          .seed = options.seed,
          .parameters = layout.parameters(),
          .buckets = layout.buckets(),
          .optimisers = options.optimisers,
          .mode = ps::PersistenceMode::kNone};
}

/// Rows of one payload, each end to end.
struct Rows {
  std::deque<std::vector<float>> arrays;

  std::span<const float> Join(const std::vector<std::span<const float>>& pieces) {
    std::vector<float>& whole = arrays.emplace_back();
    for (const std::span<const float> piece : pieces) {
      whole.insert(whole.end(), piece.begin(), piece.end());
    }
    return whole;
  }
};

ps::Push PushOf(const ps::WorkerId& worker,
                const worker::PushMessage& message,
                const worker::PushPayload& payload) {
  const auto rows = std::make_shared<Rows>();
  ps::Push push = {
      .writer = worker, .updates = payload.updates, .terms = message.terms, .owner = rows};
  for (const worker::PushPayload::Operands& operands : payload.operands) {
    push.operands.push_back({.tensor = operands.tensor,
                             .rows = operands.rows,
                             .inputs = operands.inputs,
                             .outputs = operands.outputs,
                             .activations = rows->Join(operands.activations),
                             .errors = rows->Join(operands.errors)});
  }
  return push;
}

}  // namespace

class VirtualServers::Server final : private ps::Driver {
 public:
  Server(const ShardLayout& layout,
         const VirtualServersOptions& options,
         std::uint32_t slot,
         const Clock& clock)
      : core_(ServerOptionsOf(layout, options, slot), store_, clock, *this) {}

  /// `buckets`: the server of each.
  absl::Status Begin(const std::vector<ps::ServerId>& buckets) {
    ADAMANT_RETURN_IF_ERROR(core_.ReadStored());
    ADAMANT_RETURN_IF_ERROR(Configure(buckets, /*created=*/false));
    return Configure(buckets, /*created=*/true);
  }

  ps::ParameterServer& core() { return core_; }

 private:
  // What the controller would say, and all that follows.
  absl::Status Configure(const std::vector<ps::ServerId>& buckets, bool created) {
    std::vector<ps::Configuration> records;
    for (const ps::ServerId& server_id : buckets) {
      records.push_back({.version = kEpoch,
                         .generation = 1,
                         .primary = server_id,
                         .replicas = {server_id},
                         .created = created});
    }
    core_.SetConfigurations(records, {});
    while (apply_ || storage_) {
      if (std::exchange(apply_, false)) {
        core_.ApplyCommitted();
      }
      if (std::exchange(storage_, false)) {
        ADAMANT_RETURN_IF_ERROR(core_.DoStorage());
      }
    }
    return absl::OkStatus();
  }

  // Driver: copies have no peers, and the controller has nothing to decide.
  void SendToPeer(const ps::ServerId& /*to*/, ps::PeerMessage /*message*/) override {}
  void Propose(const ps::Proposal& /*proposal*/) override {}
  void Report(const ps::BucketReport& /*report*/) override {}
  void WantApply() override { apply_ = true; }
  void WantStorage() override { storage_ = true; }

  bool apply_ = false;
  bool storage_ = false;
  storage::MemoryStore store_;
  ps::ParameterServer core_;  // last: it uses the others
};

VirtualServers::VirtualServers(const ShardLayout& layout) : layout_(layout) {}

VirtualServers::~VirtualServers() = default;

absl::StatusOr<std::unique_ptr<VirtualServers>> VirtualServers::Start(
    const ShardLayout& layout, const VirtualServersOptions& options, const Clock& clock) {
  std::unique_ptr<VirtualServers> all(new VirtualServers(layout));
  all->links_.resize(options.servers);
  for (std::uint32_t slot = 0; slot < options.servers; ++slot) {
    all->servers_.push_back(std::make_unique<Server>(layout, options, slot, clock));
  }
  std::vector<ps::ServerId> buckets;
  for (BucketId bucket = 0; bucket < layout.buckets(); ++bucket) {
    buckets.push_back(all->ServerIdOf(bucket));
  }
  for (const auto& server : all->servers_) {
    ADAMANT_RETURN_IF_ERROR(server->Begin(buckets));
  }
  return all;
}

ps::ServerId VirtualServers::ServerIdOf(BucketId bucket) const {
  return ServerIdAt(bucket % count());
}

absl::Status VirtualServers::Admit(const ps::WorkerId& worker) {
  for (const auto& server : servers_) {
    ADAMANT_RETURN_IF_ERROR(server->core().Admit(worker));
  }
  return absl::OkStatus();
}

worker::PlacementView VirtualServers::PlacementOf(std::uint32_t workers) {
  worker::PlacementView placement;
  placement.version = ++placement_version_;
  placement.part_owners = {0};
  placement.workers = workers;
  for (BucketId bucket = 0; bucket < layout_.buckets(); ++bucket) {
    placement.buckets.push_back(
        {.version = kEpoch, .generation = 1, .primary = ServerIdOf(bucket).slot});
  }
  return placement;
}

worker::PushReply VirtualServers::Apply(const ps::WorkerId& worker,
                                        const worker::PushMessage& message,
                                        const worker::PushPayload& payload) {
  worker::PushReply reply;
  bool answered = false;
  servers_[message.server]->core().Submit(PushOf(worker, message, payload),
                                          [&](const std::vector<ps::ShardAck>& acks) {
                                            reply = {.request = message.request, .acks = acks};
                                            answered = true;
                                          });
  ADAMANT_CHECK(answered, "a server without peers and disk answers at once");
  return reply;
}

absl::StatusOr<VirtualServers::Fetched> VirtualServers::Fetch(const ps::WorkerId& worker,
                                                              const worker::FetchMessage& message) {
  Fetched fetched = {.reply = {.request = message.request}};
  ADAMANT_ASSIGN_OR_RETURN(
      fetched.values,
      servers_[message.server]->core().Fetch(&worker, message.shards, message.snapshot));
  fetched.reply.shards.assign(fetched.values.begin(), fetched.values.end());
  return fetched;
}

absl::StatusOr<std::vector<float>> VirtualServers::Weights() {
  std::vector<float> weights(layout_.elements());
  for (const Shard& shard : layout_.shards()) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<ps::ShardValue> values,
                             servers_[ServerIdOf(shard.bucket).slot]->core().Fetch(
                                 nullptr, std::span(&shard.id, 1), /*snapshot=*/0));
    std::ranges::copy(
        values.front().values,
        std::span(weights).subspan(layout_.OffsetOf(shard.tensor) + shard.begin).begin());
  }
  return weights;
}

}  // namespace adamant::bench
