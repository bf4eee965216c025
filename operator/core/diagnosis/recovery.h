#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

/// Changes of a job's state when training diverges, or parameters are lost of which only
/// checkpoints are stored (JobState::recovery). Parameters, optimiser state, deduplication tables
/// and ledger come back together, as a snapshot has them; every process is started anew, so that
/// nothing that was queued, retained or delayed before is pushed again.
/// Source: docs/design/0010-divergence.md.
namespace adamant::controller {

/// The state's checkpoint holds the first weights.
void KeepFirst(JobState& state);

/// Returns the model in the state's checkpoint, as it is `counted` examples into `epoch`.
[[nodiscard]] KeptModel ModelOf(const JobState& state, DataEpoch epoch, std::uint64_t counted);

/// From now on the job goes back to `model`, which was found healthy.
void KeepHealthy(JobState& state, KeptModel model);

/// The state has a checkpoint for users: one that holds more than the first weights.
[[nodiscard]] bool HasCheckpoint(const JobState& state);

/// The epoch of the state's row has ended with it: nothing was trained since.
[[nodiscard]] bool EndedWithCheckpoint(const JobState& state);

/// Returns its name for users: "checkpoint 7" or, where it holds only them, "the first weights".
[[nodiscard]] std::string CheckpointName(const JobState& state);

/// The state's checkpoint is new; it is of a model as it is when `epoch` has been open for
/// `counted` examples.
void KeepNewest(JobState& state, DataEpoch epoch, std::uint64_t counted);

/// Returns the action that writes what users find of the checkpoint.
[[nodiscard]] WriteManifest ManifestOf(const JobState& state);

/// Returns true if the job goes back once more.
[[nodiscard]] bool MayGoBack(const JobSettings& settings, const JobState& state);

/// Turns the state into that of the healthy model, before its next attempt with its rates times
/// `rate_factor`; into that of the first weights when there is none, or when an attempt that began
/// with one has found none that is better. First weights that were never stored are made anew.
/// `counted`: examples of the open epoch.
void TurnBack(JobState& state, std::uint64_t counted, double rate_factor);

/// Factor on the rates of the next attempt where the job goes back by itself.
inline constexpr double kRateOfNextAttempt = 0.5;

/// Takes the manifest's rates. One that is not as it was has never been halved, and with any of
/// those the job may go back as often as if it had never done so.
void TakeRates(const JobSettings& settings, JobState& state);

/// Returns this attempt's factors on the rates that layers have of their own, by layer.
[[nodiscard]] std::map<std::string, double> LayerFactors(const Recovery& recovery);

/// Turns the state into that of the checkpoint, as what came after it is lost, before its next
/// attempt at the same rate; without one, into that of first weights that servers make anew. An
/// epoch whose end the checkpoint is stays ended. Returns false if the state is of a program that
/// did not keep what belongs to a checkpoint.
bool ReturnToCheckpoint(JobState& state, std::uint64_t counted);

/// All buckets come back as the state's checkpoint has them: what came after it is not lost, but
/// undone.
void UndoUpdates(JobState& state);

/// The model that the job goes back to cannot be read: turns the state into that of the healthy
/// one; if it was that, of the one before, of the first weights where there is none, and where
/// these cannot be read either, of first weights that servers make anew. False if they were to do
/// that already.
bool FallBack(JobState& state);

/// The model that the job goes back to, for people: "the model of epoch 3 (checkpoint 7)".
[[nodiscard]] std::string WhereTo(const JobState& state);

/// The text of the failure that ends a job in which `found` was noticed, and what to try.
[[nodiscard]] std::string DivergenceFailure(const JobSettings& settings,
                                            const JobState& state,
                                            const std::string& found);

/// "; the job had gone back 2 times, the last attempt was at learning rate 0.01"; "" if it had not.
[[nodiscard]] std::string AfterGoingBack(const JobSettings& settings, const JobState& state);

/// The learning rate of this attempt, for people: "learning rate 0.01".
[[nodiscard]] std::string RateOf(const JobSettings& settings, const JobState& state);

/// Of a job that fails with that.
[[nodiscard]] EndKind EndOfDivergence(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
