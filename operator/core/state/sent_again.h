#pragma once

#include <cstdint>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"

/// Updates that were rolled back with all copies of their buckets (JobState::rolled_back): workers
/// that live send again what they retain of them, and tell how many they could not.
namespace adamant::controller {

/// A bucket came back from disk. `updates`: that are rolled back by it, as far as is known.
void CountRolledBack(JobState& state, std::uint64_t updates);

/// So many more updates are lost: nobody has them any more.
void CountLost(JobState& state, std::uint64_t updates);

/// A worker is gone, and with it what it had yet to send again.
void CountWorkerGone(JobState& state);

/// Every worker has said that all it has pushed is acknowledged: tells people what has become of
/// what was rolled back, if anything was.
void TellSentAgain(const JobSettings& settings, JobState& state, Outbox& outbox);

}  // namespace adamant::controller
