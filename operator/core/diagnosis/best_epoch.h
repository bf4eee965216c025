#pragma once

#include <string>

#include "operator/core/state/state.h"

/// The best epoch of a job, beside which its last one is judged at the end.
namespace adamant::controller {

/// The epoch has this result: it may be the best.
void NoteResult(JobState& state, const EpochResult& row);

/// The state is that of an earlier model: epochs after it do not count any more. Call it once
/// `state.epoch` and `state.accuracy` are those of that model.
void ForgetUndone(JobState& state);

/// Tells that a last epoch is clearly worse than the best one: by three standard deviations of the
/// difference of two shares of so many validation examples, and by two points at least. "" if it is
/// not, or where there are too few of them to tell.
[[nodiscard]] std::string WorseThanBest(const JobState& state, const EpochResult& last);

/// ": try a lower spec.optimiser.rate …", of such a job of which nothing more is known.
[[nodiscard]] std::string TryToEndAtBest(const Hindrances& hindrances);

}  // namespace adamant::controller
