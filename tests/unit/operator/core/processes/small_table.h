#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "operator/core/job/first_state.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/processes/registration.h"
#include "operator/core/state/actions.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {

/// The slots of SmallJob; no process was asked for yet.
class SmallTable : public testing::Test {
 protected:
  using Liveness = ProcessTable::Liveness;

  std::vector<Action> Take() { return outbox_.Take(state_); }

  ProcessTable::Slot& At(SlotId id) { return processes_.At(id); }

  Registration::Joined Join(SlotId id, const std::string& uid, ConnectionId connection = 1) {
    controller::Join join;
    join.id = id;
    join.uid = uid;
    join.generation = processes_.GenerationOf(id);
    return registration_.OnJoin(connection, join, now_);
  }

  Clock::TimePoint now_{std::chrono::hours(1)};
  JobSettings settings_ = SmallJob();
  JobState state_ = NewState(settings_, 42);
  Outbox outbox_;
  ProcessTable processes_{settings_, state_, outbox_};
  Registration registration_{settings_, outbox_, processes_};
};

}  // namespace adamant::controller
