#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "services/worker/core/base/update_plan.h"

namespace adamant::worker {

/// Finds out how large a share of the rate the job bears at its staleness. Steps that are too large
/// for the delay with which they are answered make the weights swing, long before the loss shows
/// it: what they moved in one stretch of time they move back in the next. So: the share rises
/// slowly from a small one, the slower the less two stretches agree, and falls where they oppose
/// each other. A sample of the parameters tells.
/// Threads: one at a time. Source: docs/design/0009-asynchrony.md.
class GainControl {
 public:
  /// Others that train beside this worker.
  enum class Crowd {
    kMany,
    kFew,  ///< hardly more than one other: movements are noisier, and swings smaller
    kOne,  ///< and momentum remembers little of them
  };

  struct Pace {
    std::size_t stretch = 2;  ///< fetches of one movement
    double growth = 0;        ///< by which the share may rise, relatively, until the next fetch
    Crowd crowd = Crowd::kMany;
    double most = 1;  ///< at least 1; above 1 it rises only where nothing turns at all
  };

  /// `has_momentum`: the rule makes movements go on by themselves. Without it those of two
  /// stretches have little to do with each other even where nothing swings.
  GainControl(const UpdatePlan& plan, bool has_momentum);

  /// From now on the share is this one, in (0, 1]. It never falls below a quarter of it, from where
  /// it can still come back.
  void Start(double gain);

  /// The servers' values of now.
  void Observe(std::span<const float> values, const Pace& pace);

  /// The values to come have nothing to do with those before.
  void Forget();

  [[nodiscard]] double gain() const { return gain_; }

  /// Cosine of the angle between the last two stretches' movements (beside one other worker a mean
  /// of the last few); 1 before they are known.
  [[nodiscard]] double agreement() const { return agreement_; }

  static constexpr std::size_t kLongestStretch = 8;

 private:
  /// Agreements of two movements.
  struct Marks {
    double halve = 0;   // below it the gain is halved
    double cut = 0;     // below it the gain falls
    double grow = 0;    // above it the gain rises, up to 1
    double exceed = 0;  // and here beyond
    double weight = 1;  // of the last two movements beside those before
  };
  /// Of two stretches, one after the other: squares of the lengths, and the product.
  struct Movements {
    double product = 0;
    double last = 0;
    double first = 0;
  };
  static const Marks kMarks;
  static const Marks kMarksOfMomentum;
  static const Marks kMarksOfFew;
  static const Marks kMarksOfOne;

  void Judge(const Pace& pace);
  void Average(const Movements& moved, double weight);
  void Grow(const Pace& pace);

  [[nodiscard]] const Marks& MarksOf(const Pace& pace) const;

  const bool has_momentum_;
  std::vector<std::size_t> places_;         // of the parameters that are looked at
  std::deque<std::vector<float>> samples_;  // oldest first
  double gain_ = 1;
  double least_ = 0;
  Movements mean_;
  double agreement_ = 1;
  std::size_t timeout_ = 0;  // fetches until it may fall again
};

}  // namespace adamant::worker
