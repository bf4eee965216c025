#pragma once

#include <string>

#include "operator/core/state/state.h"

namespace adamant::controller {

/// Tells what parameter servers' memory took with it when buckets lost all copies: updates whose
/// examples count as trained, as many as EpochResult::updates_lost says of all epochs. "" where
/// nothing is lost: workers that have never ended have sent again what they did not count.
[[nodiscard]] std::string LostWithCopies(const JobSettings& settings, const JobState& state);

/// Returns what is to be said of the model of a job that ends: that spec.runPolicy.targetAccuracy
/// was not reached, that an earlier epoch was better, that the job went back, that little was
/// learned, or less than at a lower rate, that the model is poor, that it learned its examples
/// by heart, that updates were lost. "" where there is nothing to say.
[[nodiscard]] std::string ReservationsOf(const JobSettings& settings, const JobState& state);

/// Of a job that succeeds: kPoor, kWorse or kOther.
[[nodiscard]] EndKind EndOfSuccess(const JobSettings& settings, const JobState& state);

/// The message of a job that succeeds: why it has ended before its last epoch, if it has, and the
/// reservations.
[[nodiscard]] std::string ClosingWords(const JobSettings& settings, const JobState& state);

}  // namespace adamant::controller
