#pragma once

#include <cstdint>
#include <span>

#include "services/common/optimiser/optimiser.h"

namespace adamant {

// Update rules, element by element, in single precision. With d = g + weight_decay * w:
//   SGD       w -= rate * d
//   momentum  m = momentum * m + d;  w -= rate * m
//   Adagrad   a += d * d;  w -= rate * d / (sqrt(a) + epsilon)
// Every operation is rounded by itself, in this order, so any CPU gives the same bits and a range
// may be cut into blocks anywhere. Values that are not finite are taken as they are: check before
// (MaxMagnitude).

/// Applies one step to `weights`. `gradient` has as many elements; `state` has
/// StatePerWeight(step.kind) times as many and is changed. Threads: safe on disjoint weights and
/// state. Source: Duchi, Hazan and Singer 2011 (Adagrad, diagonal); Polyak 1964 (momentum).
void ApplyGradient(const RuleStep& step,
                   std::span<const float> gradient,
                   std::span<float> state,
                   std::span<float> weights);

/// The same step, but writes the change of the weights instead of changing them: Add(change,
/// weights) then gives the bits of ApplyGradient. `change` may be `gradient`. `weights` is read
/// only when the step has weight decay, and may else be empty.
void WeightChange(const RuleStep& step,
                  std::span<const float> gradient,
                  std::span<const float> weights,
                  std::span<float> state,
                  std::span<float> change);

/// Result of ShareChange in a thread's own `accrued`.
enum class Accrual {
  kSet,         ///< the change
  kAdd,         ///< the change is added
  kKeepBefore,  ///< the weights as they were before
  kLeave,       ///< it stays as it is, and is not read
  kDifference,  ///< the weights as they are now, less what it was
};

/// The step of a thread that shares `weights` with others without a lock (kernels/hogwild.h): adds
/// the change to them, and notes it in `accrued`. One pass, because memory is all that it waits
/// for; the bits are those of WeightChange and Add.
void ShareChange(const RuleStep& step,
                 std::span<const float> gradient,
                 std::span<float> state,
                 Accrual accrual,
                 std::span<float> accrued,
                 std::span<float> weights);

/// values[i] = now[i] - values[i]; both have as many elements and do not overlap.
void TakeDifference(std::span<const float> now, std::span<float> values);

/// With moved[i] = values[i] - (before[i] - ahead[i]): ahead[i] = factor * moved[i], and values[i]
/// += ahead[i]. All have as many elements and do not overlap.
void Extrapolate(float factor,
                 std::span<const float> before,
                 std::span<float> ahead,
                 std::span<float> values);

/// values[i] *= factor.
void Scale(float factor, std::span<float> values);

/// values[i] += change[i]; both have as many elements and do not overlap.
void Add(std::span<const float> change, std::span<float> values);

/// The largest |value|, 0 for none; not finite (infinity or NaN) exactly if one of the values is
/// not.
float MaxMagnitude(std::span<const float> values);

/// Returns whether errors^T x activations over so many rows, given their largest magnitudes, is
/// finite for certain, and so are the sums on the way. Workers and servers ask the same, so that a
/// push is refused before it is sent, or nowhere.
bool IsProductFinite(float activations, float errors, std::uint64_t rows);

}  // namespace adamant
