#include "tests/simulation/replication/world/setup.h"

#include <algorithm>

#include "tests/simulation/replication/world/updates.h"

namespace adamant::replication_simulation {
namespace {

constexpr const char* kModes[] = {"Delayed", "Wal", "WalSync", "None"};
constexpr std::int64_t kTenPercent = 100'000'000;

std::int64_t DrawDrift(Scheduler& scheduler, bool good) {
  const std::int64_t most = good ? kTenPercent : 6 * kTenPercent;
  // Most trouble is at the ends.
  if (scheduler.Chance(0.4)) {
    return scheduler.Chance(0.5) ? most : -most;
  }
  return static_cast<std::int64_t>(scheduler.rng().Below(static_cast<std::uint64_t>(2 * most))) -
         most;
}

// Gradients with momentum: what a shard holds, and what its optimiser keeps, tell the order of its
// updates.
void MakeModel(Setup& setup, std::uint32_t shards, bool on_worker) {
  setup.optimiser = {.kind = OptimiserKind::kSgd, .location = OptimiserLocation::kWorker};
  if (!on_worker) {
    setup.optimiser = {.kind = OptimiserKind::kMomentum,
                       .location = OptimiserLocation::kServer,
                       .rate = 1,
                       .momentum = 0.5};
  }
  const auto complete = [&] {
    return setup.shards_of.size() == setup.buckets &&
           std::ranges::none_of(setup.shards_of, &std::vector<ShardId>::empty);
  };
  while (setup.parameters.size() < shards || !complete()) {
    Parameter& added = setup.parameters.emplace_back();
    added.name = "tensor" + std::to_string(setup.parameters.size());
    added.shape = {kElements};
    setup.shards_of.assign(setup.buckets, {});
    const ShardLayout layout(setup.parameters, setup.buckets);
    for (const Shard& shard : layout.shards()) {
      setup.shards_of[shard.bucket].push_back(shard.id);
    }
  }
}

void NameRecords(Setup& setup) {
  setup.record_of.resize(setup.buckets);
  const auto named = [](const std::string& key) { return !key.empty(); };
  for (std::uint32_t part = 0; !std::ranges::all_of(setup.record_of, named); ++part) {
    const std::string key = "ledger/" + std::to_string(part);
    std::string& name = setup.record_of[BucketOfRecord(key, setup.buckets)];
    name = name.empty() ? key : name;
  }
}

}  // namespace

Setup DrawSetup(Scheduler& scheduler) {
  const auto between = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::uint32_t>(scheduler.Between(low, high));
  };
  Setup setup;
  setup.servers = between(3, 5);
  setup.buckets = between(1, 2);
  setup.writers = between(1, 3);
  setup.copies = scheduler.Chance(0.6) ? 3 : between(1, 2);
  setup.min_in_sync = std::min(setup.copies, between(1, 2));
  setup.mode = static_cast<ps::PersistenceMode>(scheduler.Between(0, 3));
  setup.in_flight = between(1, 3);
  setup.flush_interval = scheduler.Random(milliseconds(500), seconds(3));
  setup.think_time = scheduler.Random(milliseconds(50), milliseconds(400));
  setup.streams = scheduler.Chance(0.5);
  setup.good_clocks = scheduler.Chance(0.9);
  for (std::uint32_t slot = 0; slot < setup.servers; ++slot) {
    setup.drift.push_back(DrawDrift(scheduler, setup.good_clocks));
  }
  setup.honest_disks = scheduler.Chance(0.6);
  setup.faults = between(20, 30);
  MakeModel(setup, setup.buckets * between(1, 3), scheduler.Chance(0.5));
  NameRecords(setup);
  setup.clerks = setup.buckets * between(1, 2);
  setup.checkpoint_interval = seconds(between(3, 15));
  return setup;
}

Setup DrawSmallSetup(Scheduler& scheduler) {
  Setup setup;
  setup.writers = 1;
  setup.copies = scheduler.Chance(0.7) ? 3 : 2;
  setup.flush_interval = seconds(1);
  setup.think_time = milliseconds(400);
  setup.streams = scheduler.Chance(0.5);
  for (std::uint32_t slot = 0; slot < setup.servers; ++slot) {
    setup.drift.push_back(DrawDrift(scheduler, true));
  }
  setup.faults = scheduler.Between(6, 10);
  MakeModel(setup, 1, false);
  NameRecords(setup);
  return setup;
}

ps::ShardIdentity Setup::IdentityOf(ShardId shard) const {
  const bool here = optimiser.location == OptimiserLocation::kServer;
  return {.job_uid = kJobUid,
          .shard = shard,
          .values = kElements,
          .state = here ? kElements * StatePerWeight(optimiser.kind) : 0};
}

ps::ParameterServerOptions Setup::ParameterServerOptions(const ps::ServerId& self,
                                                         std::uint64_t attempt) const {
  return {.job_uid = kJobUid,
          .attempt = attempt,
          .self = self,
          .writers = writers,
          .parameters = parameters,
          .buckets = buckets,
          .optimisers = std::vector<ParameterOptimiser>(parameters.size(), optimiser),
          .min_in_sync = min_in_sync,
          .mode = mode,
          .flush = {.interval = flush_interval}};
}

std::string Setup::Row() const {
  return copies == 2 ? "2, any mode"
                     : std::to_string(copies) + ", " + kModes[static_cast<std::size_t>(mode)];
}

std::string Setup::Describe() const {
  std::string text =
      std::to_string(servers) + " servers, " + std::to_string(buckets) + " buckets of " +
      std::to_string(shards()) + " shards, copies " + std::to_string(copies) + ", minInSync " +
      std::to_string(min_in_sync) + ", " + kModes[static_cast<std::size_t>(mode)] + ", " +
      std::to_string(writers) + " writers of " + std::to_string(in_flight) + " pushes, " +
      std::to_string(clerks) + " clerks, " + (streams ? "streams" : "datagrams") + ", clocks";
  for (const std::int64_t each : drift) {
    text += " " + std::to_string(each / (kTenPercent / 10)) + "%";
  }
  return text + (honest_disks ? "" : ", disks that lie");
}

}  // namespace adamant::replication_simulation
