#pragma once

#include <cstddef>
#include <cstdint>

namespace adamant {

enum class OptimiserKind { kSgd, kMomentum, kAdagrad };

/// Process that turns gradients into weight changes.
enum class OptimiserLocation { kServer, kWorker };

/// The factor on a learning rate in the course of a job. Progress is how far the whole job is, in
/// examples: those acknowledged and those under way, never a process's own steps. The arithmetic
/// uses no library functions, so that the factor has the same bits on every machine.
struct Schedule {
  enum class Kind {
    kConstant,  ///< 1
    kStep,      ///< decay ^ floor(progress / every)
    kLinear,    ///< from 1 to `final_factor` over `over`, then `final_factor`
    kCosine,    ///< the same along half a cosine
  };

  Kind kind = Kind::kConstant;
  double decay = 1;         ///< kStep
  double every = 1;         ///< kStep: examples between two steps, > 0
  double final_factor = 0;  ///< kLinear, kCosine
  double over = 1;          ///< kLinear, kCosine: examples, > 0
  double warm_up = 0;       ///< examples over which a further factor rises from 0 to 1; 0: none

  [[nodiscard]] double FactorAt(std::uint64_t job_examples) const;
};

/// One step of an update rule: what changes the weights, with the rate of now.
struct RuleStep {
  OptimiserKind kind = OptimiserKind::kSgd;
  float rate = 0;
  float momentum = 0;      ///< kMomentum
  float epsilon = 0;       ///< kAdagrad
  float weight_decay = 0;  ///< all kinds; 0: none
};

/// Change to the job's optimiser for an update that was computed beside others'
/// (docs/design/0009-asynchrony.md). Whoever computes the update chooses it once; it travels with
/// the update to every copy, log and replay.
struct Correction {
  float rate = 1;    ///< factor on the learning rate, in (0, 1]
  float memory = 1;  ///< factor on the steps that momentum remembers, 1 / (1 - momentum), at least
                     ///< one; > 0. The rate falls as it rises, so that a lasting gradient moves
                     ///< weights as far.

  /// Returns whether the numbers are in their ranges.
  [[nodiscard]] bool IsValid() const {
    return rate > 0 && rate <= 1 && memory > 0 && memory < 1e9f;
  }

  friend bool operator==(const Correction&, const Correction&) = default;
};

/// Optimiser of one parameter: the job's, with the layer's overrides.
/// Threads: immutable value.
struct ParameterOptimiser {
  OptimiserKind kind = OptimiserKind::kSgd;
  OptimiserLocation location = OptimiserLocation::kServer;
  double rate = 0;  ///< before the schedule
  Schedule schedule = {};
  double momentum = 0;
  double epsilon = 0;
  double weight_decay = 0;  ///< 0 for parameters that do not decay (biases)

  [[nodiscard]] double RateAt(std::uint64_t job_examples) const {
    return rate * schedule.FactorAt(job_examples);
  }

  /// The step to take when the job is at `job_examples`. Without a correction it has the
  /// bits of the job's own numbers.
  [[nodiscard]] RuleStep At(std::uint64_t job_examples, const Correction& correction = {}) const;
};

/// Floats of optimiser state per weight: 0 for SGD, 1 for momentum and Adagrad. State starts at 0.
std::size_t StatePerWeight(OptimiserKind kind);

}  // namespace adamant
