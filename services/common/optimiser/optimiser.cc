#include "services/common/optimiser/optimiser.h"

#include <algorithm>
#include <numbers>

namespace adamant {
namespace {

/// base ^ exponent, by squaring.
double Power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      result *= base;
    }
    base *= base;
  }
  return result;
}

/// (1 + cos(pi x)) / 2 for x in [0, 1], by the Taylor series of the sine (remainder below 3e-16).
double HalfCosine(double x) {
  constexpr int kTerms = 10;
  const double y = std::numbers::pi * (x - 0.5);  // cos(pi x) = -sin(y)
  double term = y;
  double sine = y;
  for (int i = 1; i < kTerms; ++i) {
    term *= -y * y / (2.0 * i * (2.0 * i + 1.0));
    sine += term;
  }
  return (1.0 - sine) / 2.0;
}

}  // namespace

double Schedule::FactorAt(std::uint64_t job_examples) const {
  const auto progress = static_cast<double>(job_examples);
  const double ramp = warm_up > 0 ? std::min(1.0, progress / warm_up) : 1.0;
  switch (kind) {
    case Kind::kConstant:
      return ramp;
    case Kind::kStep:
      return ramp * Power(decay, static_cast<std::uint64_t>(progress / every));
    case Kind::kLinear:
      return ramp * (1.0 + (final_factor - 1.0) * std::min(1.0, progress / over));
    case Kind::kCosine:
      return ramp *
             (final_factor + (1.0 - final_factor) * HalfCosine(std::min(1.0, progress / over)));
  }
  return ramp;
}

RuleStep ParameterOptimiser::At(std::uint64_t job_examples, const Correction& correction) const {
  double corrected_rate = RateAt(job_examples) * correction.rate;
  double corrected_momentum = momentum;
  if (kind == OptimiserKind::kMomentum && correction.memory != 1) {
    corrected_rate /= correction.memory;
    corrected_momentum = std::max(0.0, 1 - (1 - momentum) / correction.memory);
  }
  return {.kind = kind,
          .rate = static_cast<float>(corrected_rate),
          .momentum = static_cast<float>(corrected_momentum),
          .epsilon = static_cast<float>(epsilon),
          .weight_decay = static_cast<float>(weight_decay)};
}

std::size_t StatePerWeight(OptimiserKind kind) { return kind == OptimiserKind::kSgd ? 0 : 1; }

}  // namespace adamant
