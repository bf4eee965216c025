#include "tests/simulation/replication/setup.h"

#include <algorithm>

namespace adamant::replication_simulation {
namespace {

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

}  // namespace

Setup DrawSetup(Scheduler& scheduler) {
  const auto between = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::uint32_t>(scheduler.Between(low, high));
  };
  Setup setup;
  setup.servers = between(3, 5);
  setup.buckets = between(1, 2);
  setup.shards = between(1, 3);
  setup.writers = between(1, 3);
  setup.copies = scheduler.Chance(0.6) ? 3 : between(1, 2);
  setup.min_in_sync = std::min(setup.copies, between(1, 2));
  setup.persistence = static_cast<Persistence>(scheduler.Between(0, 2));
  setup.flush_interval = scheduler.Random(milliseconds(500), seconds(3));
  setup.think_time = scheduler.Random(milliseconds(50), milliseconds(400));
  setup.streams = scheduler.Chance(0.5);
  setup.good_clocks = scheduler.Chance(0.9);
  for (std::uint32_t slot = 0; slot < setup.servers; ++slot) {
    setup.drift.push_back(DrawDrift(scheduler, setup.good_clocks));
  }
  setup.faults = between(20, 30);
  return setup;
}

Setup DrawSmallSetup(Scheduler& scheduler) {
  Setup setup;
  setup.shards = 1;
  setup.writers = 1;
  setup.copies = scheduler.Chance(0.7) ? 3 : 2;
  setup.flush_interval = seconds(1);
  setup.think_time = milliseconds(400);
  setup.streams = scheduler.Chance(0.5);
  for (std::uint32_t slot = 0; slot < setup.servers; ++slot) {
    setup.drift.push_back(DrawDrift(scheduler, true));
  }
  setup.faults = scheduler.Between(6, 10);
  return setup;
}

std::string Setup::Describe() const {
  static constexpr const char* kPersistence[] = {"Delayed", "Wal", "WalSync"};
  std::string text = std::to_string(servers) + " servers, " + std::to_string(buckets) +
                     " buckets of " + std::to_string(shards) + " shards, copies " +
                     std::to_string(copies) + ", minInSync " + std::to_string(min_in_sync) + ", " +
                     kPersistence[static_cast<std::size_t>(persistence)] + ", " +
                     std::to_string(writers) + " writers, " + (streams ? "streams" : "datagrams") +
                     ", clocks";
  for (const std::int64_t each : drift) {
    text += " " + std::to_string(each / (kTenPercent / 10)) + "%";
  }
  return text;
}

}  // namespace adamant::replication_simulation
