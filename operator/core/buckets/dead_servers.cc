#include "operator/core/buckets/dead_servers.h"

#include <algorithm>

namespace adamant::controller {

// Sorted, each once.
std::vector<ServerId> DeadServers::Named() const {
  std::vector<ServerId> named;
  for (const Configuration& configuration : state_.buckets) {
    named.insert(named.end(), configuration.replicas.begin(), configuration.replicas.end());
    if (configuration.learner) {
      named.push_back(*configuration.learner);
    }
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

bool DeadServers::MarkDead(ServerId server) {
  const std::vector<ServerId> named = Named();
  if (Has(server) || !std::binary_search(named.begin(), named.end(), server)) {
    return false;
  }
  state_.dead.insert(std::lower_bound(state_.dead.begin(), state_.dead.end(), server), server);
  return true;
}

bool DeadServers::MarkDeadUpTo(std::uint32_t slot, Incarnation incarnation) {
  bool news = false;
  for (const ServerId& server : Named()) {
    if (server.slot == slot && server.incarnation <= incarnation) {
      news = MarkDead(server) || news;
    }
  }
  return news;
}

bool DeadServers::MarkAllDead() {
  std::vector<ServerId> named = Named();
  const bool news = named != state_.dead;
  state_.dead = std::move(named);
  return news;
}

bool DeadServers::Has(ServerId server) const {
  return std::binary_search(state_.dead.begin(), state_.dead.end(), server);
}

void DeadServers::Prune() {
  const std::vector<ServerId> named = Named();
  std::erase_if(state_.dead, [&](const ServerId& server) {
    return !std::binary_search(named.begin(), named.end(), server);
  });
}

}  // namespace adamant::controller
