#pragma once

#include <cstdint>
#include <string>

#include "operator/core/state/state.h"

/// Models that are no better than one that has learned nothing and always names the most frequent
/// class of the validation data, or where there is too little of it, names classes at random. They
/// come of a learning rate that is too high for the number of
/// workers: the loss is not finite any more, or all ReLUs are dead.
namespace adamant::controller {

/// With fewer validation examples a good model may look like that by chance.
inline constexpr std::uint64_t kFewestJudged = 1'000;

/// Share of the most frequent class from which on naming it may be the best that can be done.
inline constexpr double kLargestShareJudged = 0.9;

/// Returns true if the model of `row` classifies more validation examples right than `right`, which
/// one that has learned nothing does, plus three standard deviations of a binomial distribution of
/// that share: those of the most frequent class, say.
[[nodiscard]] bool BeatsNaming(const EpochResult& row, double right);

/// Returns true if the model of `row` classifies right no more than the `most_frequent` examples of
/// the class that has most of them, plus three standard deviations of a binomial distribution of
/// that share. False when that cannot be told: too few examples, too large a share, or
/// `most_frequent` is 0, as data servers of before do not tell it.
[[nodiscard]] bool IsAtChance(const EpochResult& row, std::uint64_t most_frequent);

/// The same by the training loss, for rows with fewer validation examples than `kFewestJudged`:
/// whether it is hardly below `chance_loss` (JobSettings). False when that is 0, when the job has
/// `counted` too few examples by the end of this epoch, when little is known of the epoch, or when
/// even so few validation examples show that the model beats naming the most frequent class.
[[nodiscard]] bool HasChanceLoss(const EpochResult& row,
                                 std::uint64_t most_frequent,
                                 std::uint64_t counted,
                                 double chance_loss);

/// Returns true if LearnedByHeart says so of a row with fewer than `kFewestJudged` validation
/// examples, enough for a useful model to beat naming the most frequent class, which it does not.
[[nodiscard]] bool IsUselessByHeart(const EpochResult& row,
                                    std::uint64_t most_frequent,
                                    double chance_loss);

/// Returns what to tell the user of an epoch of which one of these is true.
[[nodiscard]] std::string ChanceWarning(const EpochResult& row,
                                        std::uint64_t most_frequent,
                                        double chance_loss);

/// Returns what to tell where all validation examples are of one class, which naming it classifies;
/// else "".
[[nodiscard]] std::string OneClassWarning(const EpochResult& row, std::uint64_t most_frequent);

/// Of a model that beats naming the most frequent class, but hardly: what to tell at the end of a
/// job whose training loss is next to `chance_loss`, and what to try; else "".
[[nodiscard]] std::string LearnedLittle(const EpochResult& last,
                                        const Recovery& recovery,
                                        double chance_loss,
                                        const Hindrances& hindrances = {});

/// Returns what to say of a model that knows its training data, and does worse on the validation
/// data than naming classes at random; "" of others. The rate is not why.
[[nodiscard]] std::string LearnedByHeart(const EpochResult& last, double chance_loss);

/// Tells why a job fails that ends with such a model, and what to try: a higher rate if the loss
/// has hardly moved, a lower one if training diverged; if the manifest has another cause, that.
[[nodiscard]] std::string ChanceFailure(const EpochResult& last,
                                        const Recovery& recovery,
                                        double chance_loss,
                                        const Hindrances& hindrances = {});

}  // namespace adamant::controller
