#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/processes/process_table.h"
#include "operator/core/state/state.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Has the parameter servers store a snapshot, and sees to it that it stays readable: what counts
/// is that the primary of each bucket has stored it. As long as the snapshot is needed nothing is
/// pushed, so a new primary that is asked later stores the same values.
/// Threads: one thread at a time.
class SnapshotCoordinator {
 public:
  using TimePoint = Clock::TimePoint;

  /// Wait before a snapshot that a server could not store is asked for again, and how often for
  /// lack of room.
  static constexpr std::chrono::milliseconds kRetry{2'000};
  static constexpr int kTries = 5;

  /// The first wait where a bucket is not served yet, as in the first moments of a job; it doubles
  /// up to kRetry.
  static constexpr std::chrono::milliseconds kFirstWait{50};

  /// The arguments must outlive this.
  SnapshotCoordinator(const JobSettings& settings,
                      JobState& state,
                      Outbox& outbox,
                      ProcessTable& processes,
                      const Configurations& configurations);

  /// Asks everybody to store it. `cuts`: what it holds of workers that go on pushing after it.
  void Take(std::uint64_t snapshot, std::vector<PushCut> cuts = {});

  /// The state's checkpoint is needed.
  void Need();

  /// None is needed any more.
  void Drop();

  /// Servers keep this one, too, beside those that the state names, when they store others; 0:
  /// none.
  void Keep(std::uint64_t snapshot) { kept_ = snapshot; }

  /// A server has stored it, or cannot. Returns whether that completed the snapshot, which is the
  /// state's checkpoint then. Error: ResourceExhausted when disks were full too often.
  absl::StatusOr<bool> OnTaken(std::uint32_t server, const SnapshotTaken& message, TimePoint now);

  /// Asks primaries that have not stored their buckets. Call it when buckets begin to be served.
  /// Returns whether there were any.
  bool Follow();

  /// Every primary serves and has it.
  [[nodiscard]] bool IsReadable() const;

  /// Asks again a server that may not have heard.
  void Repeat(std::uint32_t server);

  /// Returns whether the snapshot is complete since the last call or answer, as by a primary that
  /// has its bucket again and stored it before.
  bool OnTimer(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> NextTimer() const { return retry_; }

 private:
  [[nodiscard]] bool IsStored(BucketId bucket) const;
  [[nodiscard]] bool IsAllStored() const;
  [[nodiscard]] bool IsWanting(std::uint32_t server) const;
  void Request(std::uint32_t server);
  absl::Status OnFailed(std::uint32_t server, const SnapshotTaken& message, TimePoint now);
  void WaitForServing(const SlotId& server, const std::string& problem, TimePoint now);
  [[nodiscard]] bool Complete();

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  ProcessTable& processes_;
  const Configurations& configurations_;

  std::uint64_t kept_ = 0;
  std::uint64_t snapshot_ = 0;  // needed; 0: none
  bool complete_ = false;       // it was, once
  std::vector<PushCut> cuts_;
  std::vector<std::optional<CheckpointBucket>> stored_;  // by bucket: as a primary stored it
  // By bucket: the epoch under which its serving primary was asked; 0: it was not. A bucket may go
  // and come back to the server that was asked before it went.
  std::vector<ConfigurationVersion> asked_;
  std::optional<TimePoint> retry_;
  std::chrono::milliseconds wait_ = kFirstWait;  // for buckets that are not served yet
  bool told_waiting_ = false;
  int failures_ = 0;  // for lack of room
  TimePoint count_from_ = TimePoint::min();
};

}  // namespace adamant::controller
