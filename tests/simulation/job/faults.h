#pragma once

#include <cstdint>

#include "tests/simulation/job/cluster.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// What goes wrong in the course of a job: drawn from the seed, one after another, and each ends
/// some time.
/// Threads: one.
class Faults {
 public:
  static constexpr std::uint64_t kFewest = 22;
  static constexpr std::uint64_t kMost = 36;

  /// Both must outlive this.
  Faults(World& world, Cluster& cluster);

  void PlanNext();

  // --- One fault, for as long as chance says

  Clock::Duration PauseTime(const LifePtr& life);

  /// A process stands still. Not while it is on the stack.
  void Pause(const LifePtr& life, Clock::Duration time);

  /// A process, from all others or from some, in one direction or in both.
  void CutOff(const LifePtr& life);

  void CrashController();

  /// Nothing of what is planned goes wrong for this time: it waits.
  void Rest(Clock::Duration time);

  [[nodiscard]] std::uint64_t injected() const { return injected_; }

  /// When the last of those injected so far has ended.
  [[nodiscard]] Clock::TimePoint over_at() const { return over_at_; }

 private:
  void Inject();
  void KillSome();
  void BreakSome();
  void SilenceOne();
  void CutOffOne();
  void SlowDown();
  void PauseOne();
  void FillDisk();
  void FailSync();
  void SlowDisk();
  void StallOne();
  void HinderServer(std::uint32_t slot, Clock::Duration time);

  MemberProcess* AnyMember();
  Endpoint* Find(const LifePtr& life);
  Clock::Duration CutTime();
  void Lasts(Clock::Duration time);

  World& world_;
  Cluster& cluster_;
  const std::uint64_t planned_;
  const Clock::Duration longest_gap_;
  std::uint64_t injected_ = 0;
  Clock::TimePoint over_at_{};
  Clock::TimePoint disk_free_at_{};
  Clock::TimePoint rests_until_{};
};

}  // namespace adamant::simulation
