#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "services/common/base/clock.h"

namespace adamant {

/// For how long a thread has been at one and the same piece of work, as somebody sees who looks now
/// and then. A thread counts its turns: it adds one when it takes something up, and one when it is
/// done and may wait, so that the count is odd while it works; it adds two where a long piece of
/// work goes on.
/// Threads: one at a time.
class BusyMeter {
 public:
  /// Most time that counts between two looks; while any beyond it passed, the whole process stood
  /// still, or the machine slept.
  static constexpr std::chrono::seconds kLongestStep{2};

  /// Returns the time of the thread that has been at it for longest; 0: all wait, or have gone on
  /// since the last look. `turns`: by thread, as many each time or more.
  Clock::Duration Look(std::span<const std::uint64_t> turns, Clock::TimePoint now) {
    const Clock::Duration passed = std::min<Clock::Duration>(now - looked_, kLongestStep);
    looked_ = now;
    threads_.resize(turns.size());
    Clock::Duration longest{};
    for (std::size_t i = 0; i < turns.size(); ++i) {
      Thread& thread = threads_[i];
      const bool works = turns[i] % 2 == 1;
      thread.busy = works && thread.turns == turns[i] ? thread.busy + passed : Clock::Duration{};
      thread.turns = turns[i];
      longest = std::max(longest, thread.busy);
    }
    return longest;
  }

 private:
  struct Thread {
    std::uint64_t turns = 0;
    Clock::Duration busy{};
  };

  Clock::TimePoint looked_{};
  std::vector<Thread> threads_;
};

/// The turns of threads that come and go, as the members of a thread pool that enter and leave.
/// Threads: one at a time.
class Turns {
 public:
  /// A thread takes something up. Returns its place until End.
  std::size_t Begin() {
    if (free_.empty()) {
      free_.push_back(turns_.size());
      turns_.push_back(0);
    }
    const std::size_t place = free_.back();
    free_.pop_back();
    ++turns_[place];
    return place;
  }

  /// It is done with it.
  void End(std::size_t place) {
    ++turns_[place];
    free_.push_back(place);
  }

  /// By place, for a BusyMeter.
  [[nodiscard]] const std::vector<std::uint64_t>& all() const { return turns_; }

 private:
  std::vector<std::uint64_t> turns_;
  std::vector<std::size_t> free_;
};

}  // namespace adamant
