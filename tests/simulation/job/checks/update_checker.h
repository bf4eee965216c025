#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/state/state.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/messages.h"
#include "services/parameter_server/core/updates/messages.h"
#include "services/worker/core/base/messages.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/engine/scheduler.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/job/checks/restored.h"
#include "tests/simulation/job/network/messages.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

using data_server::WorkerId;

/// Follows every trained batch by the element that it adds 1 to, from the worker to the disk:
/// acknowledged means applied once and, while no server is lost, kept; refused means absent;
/// unanswered means at most once. A server that is lost takes with it at most what it had not had
/// time to flush.
/// Threads: one.
class UpdateChecker {
 public:
  /// All must outlive this. `disks`: of parameter servers, by slot.
  UpdateChecker(const Setup& setup,
                Scheduler& scheduler,
                Violations& violations,
                const std::vector<Disk>& disks);

  // --- At workers

  /// A batch is trained; returns its element. `poisoned`: it ends in NaN, so it must not be pushed.
  std::uint32_t Trained(WorkerId worker, const worker::Lease& lease, bool poisoned);

  void Sent(WorkerId worker, const PushFrame& push);
  void Replied(WorkerId worker, const worker::PushReply& reply);
  void Acknowledging(WorkerId worker, const worker::Lease& lease);
  void HandingBack(WorkerId worker, const worker::Lease& lease);

  /// Local weights right after a fetch was applied.
  void CheckWeights(WorkerId worker, std::span<const float> weights);

  /// What the worker believes was lost: nothing, if it keeps updates until they are on disk.
  void CheckRetained(WorkerId worker, std::uint64_t lost_updates);

  /// The same at the end.
  void CheckLosses(WorkerId worker, std::uint64_t lost_updates);

  // --- At parameter servers

  /// A primary answers a push.
  void Acknowledged(const parameter_server::WorkerId& writer,
                    const PushFrame& push,
                    std::span<const parameter_server::ShardAck> acks);

  /// A server answers a push that came when a snapshot had been asked for without this writer.
  void Refused(const parameter_server::WorkerId& writer,
               std::span<const parameter_server::ShardAck> acks);

  /// A primary answers a fetch: all that has been acknowledged must be there.
  void Read(ShardId shard, std::span<const float> values);

  /// The primary of this bucket does nothing from now on: it has ended, or is paused.
  void Orphaned(BucketId bucket);

  /// A process that held this bucket has ended. What was acknowledged within `window` before need
  /// not be on its disk; 0: all is. `synced`: within which it need not be synced.
  void Ended(std::uint32_t server, BucketId bucket, Clock::Duration window, Clock::Duration synced);

  /// What is not synced to the disk of this server is gone; its process has ended before.
  void PowerLost(std::uint32_t server);

  /// A bucket is served. Returns whether this generation is new and came from a disk; then Loaded
  /// follows for its shards.
  bool Restored(BucketId bucket, std::uint64_t generation);

  /// By bucket: as it was served last.
  [[nodiscard]] const std::map<BucketId, std::uint64_t>& generations() const {
    return generations_;
  }

  /// What a bucket that came back from the disk of `server` begins with.
  void Loaded(std::uint32_t server, ShardId shard, std::span<const float> values);

  /// The job goes back: from this generation on the bucket is what the snapshot holds, and nothing
  /// of the workers of before gets in any more. Returns whether the generation is news.
  bool WentBack(BucketId bucket, std::uint64_t generation, std::uint64_t snapshot);

  /// The controller asks for a snapshot of what has been acknowledged: workers of these
  /// incarnations (by slot) and later ones are at rest, so all that they have pushed must be there.
  /// `buckets`: its records.
  void SnapshotAsked(std::uint64_t snapshot,
                     std::span<const Incarnation> writers_from,
                     std::span<const controller::Configuration> buckets);

  /// Workers are to push all that they have: what is asked for then is another snapshot, though it
  /// may have the number of one before.
  void FlushAsked() { ++flushes_; }

  /// A server has stored a shard of a snapshot, perhaps again.
  void SnapshotStored(std::uint64_t snapshot,
                      std::uint32_t server,
                      ShardId shard,
                      std::span<const float> values);

  /// The volume of this server is another one: it has no snapshots.
  void SnapshotsLost(std::uint32_t server);

  /// The controller has a checkpoint: of each worker at rest all pushes up to its cut, and no
  /// other.
  void CheckCheckpoint(std::uint64_t job_uid, const controller::Checkpoint& checkpoint);

  /// The same, when it has been checked before.
  void CheckStored(std::uint64_t job_uid, const controller::Checkpoint& checkpoint);

  /// Servers make the first weights anew, under the id of a snapshot.
  void MadeAnew(std::uint64_t snapshot);

  /// Values that somebody was given as those of a snapshot.
  void CheckSnapshot(std::uint64_t snapshot, ShardId shard, std::span<const float> values);

  /// After the job: what is on the disk of the bucket's last primary.
  void CheckEnd(std::uint64_t job_uid, std::uint32_t server, BucketId bucket);

  [[nodiscard]] std::size_t trained() const { return trainings_.size(); }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  using Present = std::vector<std::uint8_t>;  // by element: 0 or 1

  struct Training {
    WorkerId worker;
    worker::Lease lease;
    bool poisoned = false;
    bool undone = false;  // the job went back since
    bool handed_back = false;
    Sequence sequence = 0;  // 0: not sent yet
  };
  struct Push {
    std::vector<std::uint32_t> elements;
    std::set<ShardId> acknowledged;
  };
  /// What was acknowledged before these is on a disk, and is synced.
  struct Safe {
    Clock::TimePoint until;
    Clock::TimePoint synced;
  };
  /// A bucket whose primary does nothing: what the others do not know to be committed they write
  /// only when one serves again.
  struct Orphan {
    Clock::TimePoint since;
    std::optional<Clock::TimePoint> until;  // an update was acknowledged again
  };
  struct ShardState {
    Present live;     // acknowledged by a primary, and not lost since
    Present applied;  // likewise, and not as a duplicate: that answer may come first
    Present ever;     // has been so
    Present lost;     // acknowledged, and gone with all copies
    std::vector<Clock::TimePoint> acknowledged_at;
    std::map<std::uint64_t, Present> snapshots;  // what must be in them
  };

  /// A snapshot, as it was asked for first since workers had pushed all they had.
  struct Snapshot {
    std::uint64_t flushes = 0;  // before it
    std::size_t trained = 0;    // batches
    std::vector<Incarnation> writers_from;
    std::map<WorkerId, Sequence> cut;                      // of workers at rest: their last push
    controller::Checkpoint checkpoint;                     // that it has become
    std::set<std::pair<std::uint32_t, BucketId>> lost_on;  // of these servers
    std::vector<std::uint64_t> generations;                // by bucket
  };

  static std::string Name(WorkerId worker);
  static std::string Name(ShardId shard, std::uint32_t element);
  std::vector<std::uint32_t> ElementsOf(const PushFrame& push, std::size_t update);
  Present Decode(ShardId shard, std::span<const float> values);
  Present DecodeServed(ShardId shard, std::span<const float> values);
  void LoadedBack(ShardId shard, const Present& found, std::uint64_t snapshot);
  void Lost(ShardId shard, std::uint32_t element);
  Training* Find(WorkerId worker, const worker::Lease& lease);
  void Expect(std::uint64_t snapshot, ShardId shard, bool stored_before);
  void CheckRest(std::uint64_t snapshot, std::span<const Incarnation> writers_from);
  void CheckCuts(const controller::Checkpoint& checkpoint);
  void CheckRestored(std::uint64_t job_uid,
                     const controller::Checkpoint& checkpoint,
                     std::uint32_t server);
  absl::StatusOr<RestoredShards> RestoreFrom(std::uint64_t job_uid,
                                             std::uint32_t server,
                                             std::span<const BucketId> buckets,
                                             std::uint64_t snapshot);
  [[nodiscard]] bool IsTrainedAfter(const Snapshot& snapshot, std::uint32_t element) const;
  void CheckHeld(std::uint64_t snapshot, ShardId shard, const Present& found);
  void CheckNothingBeyond(std::uint64_t snapshot, ShardId shard, const Present& found);
  void Report(const std::string& what) { violations_.Report(what); }

  const Setup& setup_;
  Scheduler& scheduler_;
  Violations& violations_;
  const std::vector<Disk>& disks_;
  std::vector<std::vector<float>> initial_;  // by shard
  std::vector<Training> trainings_;          // by element
  std::map<std::pair<WorkerId, data_server::BatchId>, std::map<std::uint64_t, std::uint32_t>>
      by_lease_;  // elements by batch and lease id
  std::map<std::pair<WorkerId, Sequence>, Push> pushes_;
  std::map<std::pair<WorkerId, std::uint64_t>, Sequence> requests_;
  std::map<WorkerId, std::uint64_t> poisoned_;  // batches
  std::vector<ShardState> shards_;
  std::map<std::uint64_t, Snapshot> snapshots_;
  std::uint64_t flushes_ = 0;                                // that workers were asked for
  controller::Checkpoint checkpoint_;                        // that was checked last
  std::map<std::pair<std::uint32_t, BucketId>, Safe> safe_;  // by server, on its disk
  std::map<BucketId, Orphan> orphaned_;
  std::map<BucketId, std::uint64_t> generations_;
  std::map<BucketId, std::uint64_t> went_back_;  // the last generation of which that is known
  std::map<ShardId, std::uint64_t> goes_back_;   // to this snapshot, when it is loaded
  std::set<WorkerId> before_;                    // workers of earlier attempts
  std::uint64_t lost_ = 0;                       // updates of single shards
};

}  // namespace adamant::simulation
