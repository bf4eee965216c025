#include "services/worker/core/gain_control.h"

#include <algorithm>
#include <cmath>

namespace adamant::worker {
namespace {

constexpr std::size_t kPlacesOfTensor = 512;

constexpr double kSwingingWithMomentum = 0.2;
constexpr double kTurningWithMomentum = -0.1;
constexpr double kSwinging = -0.15;
constexpr double kTurning = -0.4;
constexpr double kCut = 0.8;
constexpr double kDeepCut = 0.5;
constexpr double kLeastGain = 0.005;

}  // namespace

GainControl::GainControl(const UpdatePlan& plan, bool has_momentum)
    : swinging_(has_momentum ? kSwingingWithMomentum : kSwinging),
      turning_(has_momentum ? kTurningWithMomentum : kTurning) {
  for (const TensorPlan& tensor : plan.tensors) {
    const std::uint64_t step = std::max<std::uint64_t>(1, tensor.size / kPlacesOfTensor);
    for (std::uint64_t at = 0; tensor.trained && at < tensor.size; at += step) {
      places_.push_back(tensor.offset + at);
    }
  }
}

void GainControl::Start(double gain) {
  gain_ = std::clamp(gain, kLeastGain, 1.0);
  patience_ = 0;
}

void GainControl::Forget() {
  samples_.clear();
  agreement_ = 1;
}

void GainControl::Observe(std::span<const float> values, std::size_t stretch, double growth) {
  std::vector<float> sample;
  if (samples_.size() > 2 * kLongestStretch) {
    sample.swap(samples_.front());
    samples_.pop_front();
  }
  sample.resize(places_.size());
  std::ranges::transform(places_, sample.begin(), [&](std::size_t place) { return values[place]; });
  samples_.push_back(std::move(sample));
  if (samples_.size() > 2 * stretch) {
    Judge(stretch, growth);
  }
}

void GainControl::Judge(std::size_t stretch, double growth) {
  const std::vector<float>& now = samples_.back();
  const std::vector<float>& middle = samples_[samples_.size() - 1 - stretch];
  const std::vector<float>& before = samples_[samples_.size() - 1 - 2 * stretch];
  double product = 0;
  double last = 0;
  double first = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double u = double{now[i]} - middle[i];
    const double v = double{middle[i]} - before[i];
    product += u * v;
    last += u * u;
    first += v * v;
  }
  const double length = std::sqrt(last * first);
  agreement_ = length > 0 ? product / length : 1;
  patience_ -= patience_ > 0 ? 1 : 0;
  if (agreement_ >= swinging_) {
    gain_ = std::min(1.0, gain_ * (1 + growth));
  } else if (patience_ == 0) {
    gain_ = std::max(kLeastGain, gain_ * (agreement_ < turning_ ? kDeepCut : kCut));
    patience_ = stretch;
  }
}

}  // namespace adamant::worker
