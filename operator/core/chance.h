#pragma once

#include <cstdint>
#include <string>

#include "operator/core/state.h"

/// Models that are no better than one that has learned nothing and always names the most frequent
/// class of the validation data. They come of a learning rate that is too high for the number of
/// workers: the loss is not finite any more, or all ReLUs are dead.
namespace adamant::controller {

/// With fewer validation examples a good model may look like that by chance.
inline constexpr std::uint64_t kFewestJudged = 1'000;

/// Share of the most frequent class from which on naming it may be the best that can be done.
inline constexpr double kLargestShareJudged = 0.9;

/// Whether the model of `row` classifies right no more than the `most_frequent` examples of the
/// class that has most of them, and three standard deviations of a binomial distribution of that
/// share. False when that cannot be told: too few examples, too large a share, or `most_frequent`
/// is 0, as data servers of before do not tell it.
[[nodiscard]] bool IsAtChance(const EpochResult& row, std::uint64_t most_frequent);

/// What to tell the user of such an epoch.
[[nodiscard]] std::string ChanceWarning(const EpochResult& row, std::uint64_t most_frequent);

/// Why a job fails that ends with such a model, and what to try.
[[nodiscard]] std::string ChanceFailure(double top1);

}  // namespace adamant::controller
