#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/replication/world/setup.h"

namespace adamant::replication_simulation {

/// The disk of one slot, with what goes wrong with it.
/// Threads: one.
class Disk final : public simulation::Disk {
 public:
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
  Clock::Duration latency_{0};
  std::vector<Interval> hindrances_;
  bool has_lied_ = false;
};

/// The disk as one process has it, until it is attached elsewhere.
/// Threads: one.
class Volume final : public storage::KvStore {
 public:
  /// Sees what is written, and may change it.
  using OnWrite = std::function<void(std::vector<storage::Change>& changes)>;

  /// `disk` must outlive this.
  Volume(Disk& disk, OnWrite on_write) : disk_(disk), on_write_(std::move(on_write)) {}

  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Write(const std::vector<storage::Change>& changes) override;
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override;
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override;
  absl::Status Flush() override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

  /// From now on all fails.
  void Detach() { attached_ = false; }

 private:
  [[nodiscard]] absl::Status Attached() const;
  [[nodiscard]] std::vector<storage::Change> Seen(std::vector<storage::Change> changes) const;

  Disk& disk_;
  const OnWrite on_write_;
  bool attached_ = true;
};

}  // namespace adamant::replication_simulation
