#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "operator/core/buckets/placement.h"
#include "operator/core/job/first_state.h"
#include "operator/core/processes/process_starter.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/processes/registration.h"
#include "operator/core/processes/silence_watch.h"
#include "operator/core/state/actions.h"
#include "operator/core/state/outcome.h"
#include "operator/core/training/training_run.h"
#include "tests/unit/operator/core/job/harness.h"

namespace adamant::controller {

/// Parts of a JobController that its smaller ones work with. All processes of SmallJob are asked
/// for, each for the first time; the test plays them.
class JobParts : public testing::Test {
 protected:
  JobParts() {
    placement_.Begin(true, false, now_);
    for (const Role role : {Role::kDataServer, Role::kParameterServer, Role::kWorker}) {
      starter_.StartRole(role, {}, now_);
    }
    Take();
  }

  std::vector<Action> Take() { return outbox_.Take(state_); }

  static Join JoinOf(SlotId id, const std::string& uid) {
    Join join;
    join.id = id;
    join.uid = uid;
    join.generation = 1;
    return join;
  }

  [[nodiscard]] ConnectionId ConnectionOf(SlotId id) const { return SlotIndex(settings_, id) + 1; }

  void JoinAll() {
    for (const ProcessTable::Slot& slot : processes_.slots()) {
      registration_.OnJoin(ConnectionOf(slot.id), JoinOf(slot.id, "first"), now_);
    }
    HearAllBut({});
    Take();
  }

  void HearAllBut(const std::vector<SlotId>& silent) {
    for (const ProcessTable::Slot& slot : processes_.slots()) {
      if (std::ranges::find(silent, slot.id) == silent.end()) {
        silence_.OnHeartbeat(processes_.At(slot.id), now_);
      }
    }
  }

  /// All have joined, servers have empty disks, and training begins.
  void BeginTraining() {
    JoinAll();
    for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
      placement_.OnStored(server, {});
    }
    for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
      placement_.OnReady(server, ReadyOf(server));
    }
    training_.Settle(now_);
    ASSERT_TRUE(training_.begun());
    Take();
  }

  /// The server serves the buckets that it is primary of.
  [[nodiscard]] BucketsReady ReadyOf(std::uint32_t server) const {
    BucketsReady ready;
    for (BucketId bucket = 0; bucket < state_.buckets.size(); ++bucket) {
      const Configuration& configuration = state_.buckets[bucket];
      if (configuration.primary.slot == server) {
        ready.buckets.push_back({.bucket = bucket, .configuration_version = configuration.version});
      }
    }
    return ready;
  }

  Clock::TimePoint now_{std::chrono::hours(1)};
  JobSettings settings_ = SmallJob();
  JobState state_ = NewState(settings_, 42);
  Outbox outbox_;
  Outcome outcome_{state_, outbox_};
  ProcessTable processes_{settings_, state_, outbox_};
  ProcessStarter starter_{settings_, outbox_, processes_};
  Registration registration_{settings_, outbox_, processes_};
  SilenceWatch silence_{settings_, outbox_, processes_};
  Placement placement_{settings_, state_, outbox_, processes_};
  TrainingRun training_{settings_, state_, outbox_, processes_, starter_, placement_, outcome_};
};

}  // namespace adamant::controller
