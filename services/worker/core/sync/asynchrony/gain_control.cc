#include "services/worker/core/sync/asynchrony/gain_control.h"

#include <algorithm>
#include <cmath>

namespace adamant::worker {
namespace {

constexpr std::size_t kPlacesOfTensor = 512;

constexpr double kCut = 0.8;
constexpr double kDeepCut = 0.5;
constexpr double kLeastOfStart = 0.25;

}  // namespace

// Measured: docs/bench/scaling.md. Without momentum what one stretch moves by chance the next takes
// back, up to a cosine of -0.5. Beside one other a single cosine is mostly chance: a mean counts.
const GainControl::Marks GainControl::kMarks = {
    .halve = -0.8, .cut = -0.6, .grow = -0.3, .exceed = 0.3};
const GainControl::Marks GainControl::kMarksOfMomentum = {
    .halve = -0.1, .cut = 0.2, .grow = 0.7, .exceed = 0.9};
const GainControl::Marks GainControl::kMarksOfFew = {
    .halve = -0.6, .cut = -0.4, .grow = -0.2, .exceed = 0.9};
const GainControl::Marks GainControl::kMarksOfOne = {
    .halve = -0.85, .cut = -0.75, .grow = -0.6, .exceed = 0, .weight = 0.25};

GainControl::GainControl(const UpdatePlan& plan, bool has_momentum) : has_momentum_(has_momentum) {
  for (const TensorPlan& tensor : plan.tensors) {
    const std::uint64_t step = std::max<std::uint64_t>(1, tensor.size / kPlacesOfTensor);
    for (std::uint64_t at = 0; tensor.trained && at < tensor.size; at += step) {
      places_.push_back(tensor.offset + at);
    }
  }
}

void GainControl::Start(double gain) {
  gain_ = gain;
  least_ = kLeastOfStart * gain;
  timeout_ = 0;
}

void GainControl::Forget() {
  samples_.clear();
  mean_ = {};
  agreement_ = 1;
}

void GainControl::Observe(std::span<const float> values, const Pace& pace) {
  std::vector<float> sample;
  if (samples_.size() > 2 * kLongestStretch) {
    sample.swap(samples_.front());
    samples_.pop_front();
  }
  sample.resize(places_.size());
  std::ranges::transform(places_, sample.begin(), [&](std::size_t place) { return values[place]; });
  samples_.push_back(std::move(sample));
  gain_ = std::min(gain_, pace.most);
  if (samples_.size() > 2 * pace.stretch) {
    Judge(pace);
  }
}

const GainControl::Marks& GainControl::MarksOf(const Pace& pace) const {
  if (!has_momentum_) {
    return kMarks;
  }
  switch (pace.crowd) {
    case Crowd::kOne:
      return kMarksOfOne;
    case Crowd::kFew:
      return kMarksOfFew;
    case Crowd::kMany:
      break;
  }
  return kMarksOfMomentum;
}

void GainControl::Judge(const Pace& pace) {
  const std::vector<float>& now = samples_.back();
  const std::vector<float>& middle = samples_[samples_.size() - 1 - pace.stretch];
  const std::vector<float>& before = samples_[samples_.size() - 1 - 2 * pace.stretch];
  Movements moved;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double u = double{now[i]} - middle[i];
    const double v = double{middle[i]} - before[i];
    moved.product += u * v;
    moved.last += u * u;
    moved.first += v * v;
  }
  const Marks& marks = MarksOf(pace);
  Average(moved, marks.weight);
  timeout_ -= timeout_ > 0 ? 1 : 0;
  if (agreement_ >= marks.cut) {
    Grow(pace);
  } else if (timeout_ == 0) {
    gain_ = std::max(least_, gain_ * (agreement_ < marks.halve ? kDeepCut : kCut));
    timeout_ = pace.stretch;
  }
}

void GainControl::Average(const Movements& moved, double weight) {
  const double share = mean_.last > 0 ? weight : 1;
  mean_.product += share * (moved.product - mean_.product);
  mean_.last += share * (moved.last - mean_.last);
  mean_.first += share * (moved.first - mean_.first);
  const double length = std::sqrt(mean_.last * mean_.first);
  agreement_ = length > 0 ? mean_.product / length : 1;
}

// Falls as slowly where the movements agree less than they should.
void GainControl::Grow(const Pace& pace) {
  const Marks& marks = MarksOf(pace);
  const double enough = gain_ > 1 ? marks.exceed : marks.grow;
  const double factor = 1 + pace.growth * (agreement_ - enough) / (1 - enough);
  gain_ = std::clamp(gain_ * factor, least_, pace.most);
}

}  // namespace adamant::worker
