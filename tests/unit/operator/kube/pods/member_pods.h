#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/messages.h"
#include "operator/kube/pods/pod_view.h"

namespace adamant::kube {

inline constexpr controller::SlotId kMember{controller::Role::kWorker, 0};

/// A pod of kMember, as it is seen.
inline std::shared_ptr<const PodView> PodOfMember(std::uint64_t generation,
                                                  std::vector<std::string> addresses) {
  auto view = std::make_shared<PodView>();
  view->pod.uid = "uid-of-" + std::to_string(generation);
  view->addresses = std::move(addresses);
  view->pod.process = {.id = kMember, .generation = generation};
  return view;
}

/// Somebody joins as kMember.
inline controller::Join JoinFrom(const std::string& peer, std::uint64_t generation = 2) {
  controller::Join join;
  join.id = kMember;
  join.generation = generation;
  join.peer = peer;
  return join;
}

}  // namespace adamant::kube
