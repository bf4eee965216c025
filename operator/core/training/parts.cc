#include "operator/core/training/parts.h"

#include <algorithm>
#include <vector>

namespace adamant::controller {

bool Parts::Reassign() {
  std::vector<std::uint32_t> running;
  for (std::uint32_t slot = 0; slot < settings_.data_servers; ++slot) {
    if (processes_.IsRunning({Role::kDataServer, slot})) {
      running.push_back(slot);
    }
  }
  // A part goes to the running server that dispatches the fewest.
  const auto load = [&](std::uint32_t slot) {
    return std::count(state_.part_owner.begin(), state_.part_owner.end(), slot);
  };
  bool changed = false;
  for (std::uint32_t& owner : state_.part_owner) {
    if (running.empty() || processes_.IsRunning({Role::kDataServer, owner})) {
      continue;
    }
    owner = *std::min_element(
        running.begin(), running.end(), [&](auto a, auto b) { return load(a) < load(b); });
    changed = true;
  }
  if (changed) {
    outbox_.StateChanged();
  }
  return changed;
}

bool Parts::Rebalance() {
  bool changed = false;
  for (std::uint32_t part = 0; part < state_.part_owner.size(); ++part) {
    if (state_.part_owner[part] != part && processes_.IsRunning({Role::kDataServer, part})) {
      state_.part_owner[part] = part;
      changed = true;
    }
  }
  if (changed) {
    outbox_.StateChanged();
  }
  return changed;
}

bool Parts::Started() const {
  return std::all_of(state_.part_owner.begin(), state_.part_owner.end(), [&](std::uint32_t owner) {
    return processes_.IsStarted({Role::kDataServer, owner});
  });
}

}  // namespace adamant::controller
