#pragma once

#include "services/common/base/clock.h"
#include "services/common/base/rng.h"

namespace adamant::bench {

/// Of a process that stands still, again and again: for the last `lasts` of every `every` steps.
struct Pause {
  double every = 0;  ///< 0: never
  double lasts = 0;  ///< less than `every`
};

/// Times are in steps.
struct PaceOptions {
  double step = 1;              ///< what a batch takes
  double jitter = 0.1;          ///< a step takes up to this share more or less
  double latency_jitter = 0.1;  ///< and so does a message
  Pause pause = {};
};

/// How fast a virtual worker and its messages are. Threads: one.
class Pace {
 public:
  Pace(const PaceOptions& options, std::uint64_t seed);

  /// What the next batch takes a thread that is not stopped, by chance.
  Clock::Duration NextStep();

  /// How many times the usual latency the next message of this worker has, or to it, by chance.
  double NextLatency() { return Vary(options_.latency_jitter); }

  /// When work that begins at this time is done: it rests in pauses.
  [[nodiscard]] Clock::TimePoint Done(Clock::TimePoint begin, Clock::Duration work) const;

  /// The first moment from this one on in which the process does not stand still.
  [[nodiscard]] Clock::TimePoint Awake(Clock::TimePoint time) const;

 private:
  double Vary(double jitter) { return 1 + rng_.Uniform(-jitter, jitter); }

  /// From `time` on, until the process stands still next; 0 while it does.
  [[nodiscard]] Clock::Duration UntilPause(Clock::TimePoint time) const;

  const PaceOptions options_;
  const Clock::Duration every_;
  const Clock::Duration lasts_;
  Rng rng_;
};

}  // namespace adamant::bench
