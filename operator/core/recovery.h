#pragma once

#include <cstdint>
#include <string>

#include "operator/core/actions.h"
#include "operator/core/state.h"

/// What a job's state becomes when training diverges (JobState::recovery). Parameters, optimiser
/// state, deduplication tables and ledger come back together, as the snapshot `healthy` has them;
/// every process is started anew, so that nothing that was queued, retained or delayed before is
/// pushed again.
/// Source: docs/design/divergence.md.
namespace adamant::controller {

/// The state's checkpoint holds the first weights.
void KeepFirst(JobState& state);

/// The state's checkpoint, at the end of its epoch, is of a healthy model.
void KeepHealthy(JobState& state);

/// The state has a checkpoint for users: one that holds more than the first weights.
[[nodiscard]] bool HasCheckpoint(const JobState& state);

/// Whether the job goes back once more.
[[nodiscard]] bool MayGoBack(const JobSettings& settings, const JobState& state);

/// Turns the state into that of the healthy model, before its next attempt with half the rate; into
/// that of the first weights when an attempt that began with a model has found none that is better.
/// `counted`: examples of the open epoch.
void TurnBack(JobState& state, std::uint64_t counted);

/// The text of the failure that ends a job in which `found` was noticed, and what to try.
[[nodiscard]] std::string DivergenceFailure(const JobSettings& settings,
                                            const JobState& state,
                                            const std::string& found);

/// "; the job had gone back 2 times, the last attempt was at learning rate 0.01"; "" if it had not.
[[nodiscard]] std::string AfterGoingBack(const JobSettings& settings, const JobState& state);

/// The learning rate of this attempt, for people: "learning rate 0.01".
[[nodiscard]] std::string RateOf(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
