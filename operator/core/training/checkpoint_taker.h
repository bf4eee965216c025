#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/core/buckets/configurations.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"
#include "operator/core/training/snapshot_coordinator.h"

namespace adamant::controller {

/// Takes checkpoints within an epoch, each of which holds exactly the pushes up to one sequence of
/// each worker: workers pause their pushes until the servers have stored a snapshot, and go on
/// computing. An attempt that a worker disturbs, or that takes too long, is given up. After each
/// they train for at least as long as it took, however short the interval is.
///
/// Threads: one thread at a time.
/// Source: docs/design/0002-replication.md, "Checkpoints".
class CheckpointTaker {
 public:
  using TimePoint = Clock::TimePoint;

  /// Time for the workers to come to rest, and for the servers to store. Workers pause their pushes
  /// a third longer (PushPause::kTimeout), whatever their clocks.
  static constexpr std::chrono::milliseconds kPauseTime{10'000};
  static constexpr std::chrono::milliseconds kStoreTime{20'000};

  /// Between tries of one that was requested.
  static constexpr std::chrono::milliseconds kRetry{2'000};

  /// The arguments must outlive this.
  CheckpointTaker(const JobSettings& settings,
                  JobState& state,
                  Outbox& outbox,
                  ProcessTable& processes,
                  const Configurations& configurations,
                  SnapshotCoordinator& snapshots)
      : settings_(settings),
        state_(state),
        outbox_(outbox),
        processes_(processes),
        configurations_(configurations),
        snapshots_(snapshots) {}

  /// The epoch is open: the next checkpoint is due in checkpoint_interval. Workers that an earlier
  /// controller has left paused go on.
  void Open(TimePoint now);

  /// The epoch closes: there is none until the next opens.
  void Close();

  /// One is wanted that begins from now on: as soon as an epoch is open. One that is disturbed is
  /// tried again, until the epoch's end, which stores everything anyhow.
  void Request(TimePoint now);

  /// checkpoint_interval was another before: the next is due by what it is now.
  void OnIntervalChanged(std::chrono::milliseconds before);

  /// A worker has joined: it gets its command again, or the attempt ends if it is another process.
  void OnWorkerJoined(std::uint32_t worker);
  void OnWorkerLost(std::uint32_t worker);
  void OnPushesPaused(std::uint32_t worker, const PushesPaused& message, TimePoint now);

  /// Configurations have changed. An attempt ends when a bucket has lost all replicas meanwhile:
  /// workers that pause send again what was rolled back.
  void OnConfigurationsChanged();

  /// The snapshot is stored, or cannot be.
  void OnStored(TimePoint now);
  void GiveUp(const std::string& why);

  void OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const;

 private:
  struct Attempt {
    std::uint64_t snapshot = 0;
    bool requested = false;
    TimePoint since{};
    TimePoint deadline{};
    std::map<std::uint32_t, std::uint64_t> waiting;  // worker → incarnation
    std::vector<PushCut> cuts;                       // of those who pause
    std::vector<std::uint64_t> generations;          // of the buckets, at its beginning
  };

  void Begin(TimePoint now);
  void Rest(TimePoint now);
  void Resume();
  [[nodiscard]] std::uint64_t IncarnationOf(std::uint32_t worker) const;

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
  const Configurations& configurations_;
  SnapshotCoordinator& snapshots_;

  std::optional<Attempt> attempt_;
  std::optional<TimePoint> next_;  // when the next attempt begins
  bool requested_ = false;         // and has not begun
};

}  // namespace adamant::controller
