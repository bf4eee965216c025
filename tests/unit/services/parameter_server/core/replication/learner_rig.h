#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <variant>

#include "tests/unit/services/parameter_server/core/replication/rig.h"

namespace adamant::parameter_server {

template <class Kind>
bool Is(const Packet& packet) {
  return std::holds_alternative<Kind>(packet.message.kind);
}

/// Two replicas, 0 and 1; 2 is to learn once it is named.
struct LearnerRig : Rig {
  explicit LearnerRig(RigOptions options = {.copies = 2}) : Rig(options) {}

  void NameLearner() {
    names_learners = false;
    record.learner = (*this)[2].self;
    for (const std::uint32_t slot : {0U, 1U, 2U}) {
      replica(slot).OnConfiguration(record, now());
    }
  }

  /// Takes from the network what `take` accepts, for later.
  std::deque<Packet> held;
  void Hold(std::function<bool(const Packet&)> take) {
    Drop([this, take = std::move(take)](const Packet& packet) {
      if (take(packet)) {
        held.push_back(packet);
        return true;
      }
      return false;
    });
  }
};

}  // namespace adamant::parameter_server
