#include "operator/kube/resources/pod_nodes.h"

#include <iterator>

namespace adamant::kube {

void PodNodes::Update(const JobObjects& seen) {
  for (const auto& pod : seen.pods) {
    if (!pod->node.empty() && pod->IsProcess()) {
      ran_on_[pod->pod.process] = pod->node;
    }
  }
  nodes_.clear();
  if (!seen.node_of) {
    return;
  }
  for (const auto& pod : seen.pods) {
    if (!pod->node.empty()) {
      nodes_.try_emplace(pod->node, seen.node_of(pod->node));
    }
  }
  absences_.Update(nodes_, clock_);
}

std::optional<std::chrono::milliseconds> PodNodes::AwayFor(const std::string& node) const {
  const auto away = absences_.Of(node, clock_.Now());
  return away ? std::optional(std::chrono::floor<std::chrono::milliseconds>(*away)) : std::nullopt;
}

bool PodNodes::IsOutOfService(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second != nullptr && found->second->out_of_service;
}

std::string PodNodes::ZoneOf(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() || found->second == nullptr ? "" : found->second->zone;
}

std::map<std::string, std::string> PodNodes::Zones() const {
  std::map<std::string, std::string> zones;
  for (const auto& [name, node] : nodes_) {
    if (node != nullptr && !node->zone.empty()) {
      zones.emplace(name, node->zone);
    }
  }
  return zones;
}

std::string PodNodes::WhereItRan(controller::SlotId id) const {
  const auto after = ran_on_.upper_bound({.id = id, .generation = UINT64_MAX});
  const bool known = after != ran_on_.begin() && std::prev(after)->first.id == id;
  return known ? " (on " + std::prev(after)->second + ")" : "";
}

void PodNodes::ForgetBefore(const controller::StartProcess& process) {
  std::erase_if(ran_on_, [&](const auto& entry) {
    return entry.first.id == process.id && entry.first.generation + 1 < process.generation;
  });
}

}  // namespace adamant::kube
