#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/replication/processes/cluster.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

/// Plans and makes what goes wrong, by the seed.
/// Threads: one.
class Faults {
 public:
  Faults(World& world, Cluster& cluster) : world_(world), cluster_(cluster) {}

  void PlanNext();

  [[nodiscard]] std::uint64_t injected() const { return injected_; }
  [[nodiscard]] bool over() const {
    return injected_ == world_.setup.faults && world_.scheduler.Now() >= over_at_;
  }

  /// Ends whatever still lasts.
  void Heal();

  // --- At steps: to the process of this life

  Clock::Duration PauseTime();

  /// It pauses from now on.
  void Pause(const LifePtr& life, Clock::Duration time);
  void Crash(const LifePtr& life);
  void CutOff(const LifePtr& life);

 private:
  void Inject();
  void InjectProcessFault();
  void InjectNetworkFault();
  void InjectDiskFault();
  void InjectControllerFault();

  void KillSome();
  void KillAll();
  void LosePower();
  void Pause(std::uint32_t slot);
  void Drain(std::uint32_t slot);
  void MoveVolume(std::uint32_t slot);
  void IsolateThenKillAll(std::uint32_t slot);
  void CutLink(Place from, Place to, bool both, Clock::Duration time);
  void Isolate(std::uint32_t slot);
  void CutFromController(std::uint32_t slot);
  void Flap();
  void Lose();
  void SlowDown();
  void BreakStreams(std::uint32_t slot);
  void FillDisk(std::uint32_t slot);
  void SlowDisk(std::uint32_t slot);
  void CorruptDisk(std::uint32_t slot);

  /// This, and what follows from it, goes on for a while.
  void Lasts(Clock::Duration time);
  void Tell(const std::string& what, std::uint64_t a = 0, std::uint64_t b = 0) {
    world_.scheduler.Record("fault", what, a, b);
  }
  std::uint32_t AnySlot();
  std::uint32_t AnyPrimary();
  Clock::Duration Some(Clock::Duration low, Clock::Duration high) {
    return world_.scheduler.Random(low, high);
  }

  World& world_;
  Cluster& cluster_;
  std::uint64_t injected_ = 0;
  Clock::TimePoint over_at_{};
  Clock::TimePoint disk_free_at_{};  // for a while
};

}  // namespace adamant::replication_simulation
