#pragma once

#include <cstddef>
#include <vector>

#include "services/common/base/clock.h"
#include "services/parameter_server/core/storage/scrub.h"

namespace adamant::parameter_server {

/// Schedule of what is read again: one value after the other, pass after pass, with pauses; without
/// them for as many values as a pass has once one is damaged, because that seldom comes alone.
/// Threads: one.
class ScrubSchedule {
 public:
  /// `clock` must outlive this.
  ScrubSchedule(const ScrubLimits& limits, const Clock& clock);

  /// Begins a pass over these.
  void Begin(std::vector<ScrubbedValue> values);

  /// The next value of the pass; null when it is over. Valid until the next Begin.
  const ScrubbedValue* Next();
  [[nodiscard]] bool IsOver() const { return next_ >= values_.size(); }

  /// Damage was found apart from Finish: all is to be read at once. A pass that is hurried already
  /// does not begin again, because what cannot be written stays damaged.
  void Hurry();

  /// Says when to go on, after a value has been read. `found`: there was one; `damaged`: it was.
  void Finish(bool found, bool damaged);

  [[nodiscard]] Clock::TimePoint DueAt() const { return due_at_; }

 private:
  const ScrubLimits limits_;
  const Clock& clock_;
  std::vector<ScrubbedValue> values_;  // of the pass
  std::size_t next_ = 0;               // of them
  std::size_t hurried_ = 0;            // values that are read without a pause
  Clock::TimePoint due_at_;
};

}  // namespace adamant::parameter_server
