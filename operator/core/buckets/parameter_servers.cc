#include "operator/core/buckets/parameter_servers.h"

#include <algorithm>
#include <utility>

namespace adamant::controller {

ParameterServers::ParameterServers(const JobSettings& settings, const ProcessTable& processes)
    : settings_(settings), processes_(processes), away_since_(settings.parameter_servers) {}

void ParameterServers::Begin(TimePoint now) {
  away_since_.assign(settings_.parameter_servers, now);
  opened_.assign(settings_.parameter_servers, 0);
}

void ParameterServers::OnLost(std::uint32_t slot, TimePoint now) {
  draining_.erase(slot);
  unflushed_.erase(slot);
  away_since_[slot] = now;
}

void ParameterServers::OnOpened(std::uint32_t slot) {
  opened_[slot] = ServerIdOf(slot).incarnation;
}

double ParameterServers::OldestUnflushed(std::uint32_t slot) const {
  const auto found = unflushed_.find(slot);
  return found == unflushed_.end() ? 0 : found->second;
}

void ParameterServers::SetZones(std::map<std::string, std::string> zones) {
  zones_ = std::move(zones);
}

ServerId ParameterServers::ServerIdOf(std::uint32_t slot) const {
  return {.slot = slot, .incarnation = processes_.IncarnationOf({Role::kParameterServer, slot})};
}

bool ParameterServers::Runs(ServerId server) const {
  return processes_.IsRunning({Role::kParameterServer, server.slot}) &&
         ServerIdOf(server.slot) == server;
}

std::vector<Balancer::Server> ParameterServers::All() const {
  std::vector<Balancer::Server> servers;
  for (std::uint32_t slot = 0; slot < settings_.parameter_servers; ++slot) {
    const ProcessTable::Slot& at = processes_.At({Role::kParameterServer, slot});
    const auto zone = zones_.find(at.node);
    servers.push_back({.id = ServerIdOf(slot),
                       .running = at.liveness == ProcessTable::Liveness::kRunning &&
                                  opened_[slot] == ServerIdOf(slot).incarnation,
                       .draining = draining_.contains(slot),
                       .node = at.node,
                       .zone = at.zone.empty() && zone != zones_.end() ? zone->second : at.zone,
                       .away_since = away_since_[slot]});
  }
  return servers;
}

bool ParameterServers::KnowsWhoRuns() const {
  return std::ranges::none_of(processes_.slots(), [&](const ProcessTable::Slot& slot) {
    return slot.id.role == Role::kParameterServer && processes_.MayPush(slot) &&
           !processes_.IsRunning(slot.id);
  });
}

}  // namespace adamant::controller
