#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/replication/setup.h"

namespace adamant::replication_simulation {

/// The disk of one slot, with what goes wrong with it.
/// Threads: one.
class Disk final : public simulation::Disk {
 public:
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    return simulation::Disk::Write(Seen(changes));
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return simulation::Disk::WriteLogged(Seen(changes));
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return simulation::Disk::WriteLazily(Seen(changes));
  }

  /// Sees what is written, and may change it. Of the process that has it open.
  std::function<void(std::vector<storage::Change>& changes)> on_write;

  // --- Faults

  /// So much longer every task takes.
  void SetLatency(Clock::Duration latency) { latency_ = latency; }
  [[nodiscard]] Clock::Duration latency() const { return latency_; }

  /// Nothing is synced any more; not to be known by who asks has_lied() if it is a `secret`.
  void Lie(bool lying, bool secret = false) {
    SetLying(lying);
    has_lied_ = has_lied_ || (lying && !secret);
  }

  /// A bit flips in a stored value, if there is one.
  void FlipBit(Rng& rng);

  /// A bit flips in the log.
  void Damage() {
    DamageLog();
    has_lied_ = true;
  }

  /// Something keeps it, or the process that uses it, from storing at the usual pace.
  void Hindered(Clock::TimePoint from, Clock::TimePoint until) {
    hindrances_.push_back({from, until});
  }
  [[nodiscard]] const std::vector<Interval>& hindrances() const { return hindrances_; }

  /// It may have lost, or not show any more, what it said was stored.
  [[nodiscard]] bool has_lied() const { return has_lied_; }

 private:
  [[nodiscard]] std::vector<storage::Change> Seen(std::vector<storage::Change> changes) const;

  Clock::Duration latency_{0};
  std::vector<Interval> hindrances_;
  bool has_lied_ = false;
};

}  // namespace adamant::replication_simulation
