#include "tests/simulation/operator/cluster.h"

namespace adamant::orchestration {
namespace {

constexpr std::uint64_t kMostEvents = 200'000;

}  // namespace

Cluster::Cluster(std::uint64_t seed, Mutation mutation) : world(seed, mutation) {
  world.api.SetObserver([this](const kube::MemoryApiStore::Change& change) {
    world.changed[change.resource] = change.version;
    checker.OnChange(change);
  });
  for (const char* name : {"operator-0", "operator-1"}) {
    operators.push_back(std::make_unique<OperatorProcess>(world, network, name));
  }
  operators.front()->Lead();
  Tick();
}

bool Cluster::Step() {
  if (!world.violations.first().empty()) {
    return false;
  }
  nodes.OnApiChanged();
  for (const auto& process : operators) {
    process->OnApiChanged();
  }
  if (world.scheduler.executed() > kMostEvents) {
    world.violations.Report("too much happens");
    return false;
  }
  return world.scheduler.RunNext();
}

void Cluster::RunFor(Clock::Duration time) {
  const Clock::TimePoint end = world.scheduler.Now() + time;
  while (world.scheduler.Now() < end && Step()) {
  }
}

void Cluster::ChangeLeader() {
  operators.front()->Crash();
  operators.back()->Lead();
}

std::string Cluster::Details() const {
  std::string text = " (" + user.PhaseNow() + ";";
  for (const std::string& thing : user.Belongings()) {
    text += " " + thing;
  }
  return text + ")";
}

}  // namespace adamant::orchestration
