#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "operator/core/processes/process_table.h"
#include "operator/core/processes/registration.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

// A job of three parameter servers, a data server and a worker; all servers have joined, each at
// the connection slot + 1.
class JoinedServers : public testing::Test {
 protected:
  JoinedServers() {
    for (std::uint32_t slot = 0; slot < settings_.parameter_servers; ++slot) {
      Join(slot, "first");
    }
  }

  void Join(std::uint32_t slot, const std::string& uid) {
    const auto joined = registration_.OnJoin(
        slot + 1,
        {.id = Server(slot), .uid = uid, .address = "host:" + std::to_string(slot), .node = "n"},
        now_);
    ASSERT_NE(joined, Registration::Joined::kRefused);
  }

  void MarkLost(std::uint32_t slot) { processes_.Retire(processes_.At(Server(slot))); }

  static JobState FirstState() {
    JobState state;
    state.term = 5;
    state.slots.resize(5);
    return state;
  }

  static SlotId Server(std::uint32_t slot) { return {Role::kParameterServer, slot}; }

  [[nodiscard]] ServerId ServerIdAt(std::uint32_t slot) const {
    return {.slot = slot, .incarnation = processes_.IncarnationOf(Server(slot))};
  }

  const JobSettings settings_{.parameter_servers = 3, .buckets = 2, .copies = 3, .min_in_sync = 2};
  JobState state_ = FirstState();
  Outbox outbox_;
  ProcessTable processes_{settings_, state_, outbox_};
  Registration registration_{settings_, outbox_, processes_};
  const Clock::TimePoint now_{std::chrono::hours(1)};
};

}  // namespace adamant::controller
