#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket.h"
#include "services/parameter_server/core/storage/stored_bucket.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/replication/checks/record_checker.h"
#include "tests/simulation/replication/checks/snapshot_books.h"
#include "tests/simulation/replication/world/disk.h"
#include "tests/simulation/replication/world/setup.h"
#include "tests/simulation/replication/world/updates.h"

namespace adamant::replication_simulation {

/// Keeps books of its own about every bucket, and compares. Its numbering of promises is that of
/// reliability:
///   I1 one lease-valid primary          I7 logs agree by lsn
///   I2 one primary a configuration             I8 what is stored is a prefix of what is committed
///   I3 nothing accepted below a configuration  I9 who joins has all that is committed
///   I4 committed: at every replica       I10 one controller changes records
///   I5 acknowledged: at every primary   I11 a read shows all that was acknowledged before
///   I6 each update at most once         I12 what a total loss takes is bounded
///   I14 nobody who lives leaves fewer than minInSync behind
///   I15 what is durable is on every replica's disk
/// Threads: one.
class Checker {
 public:
  /// What it may look at, in the processes that live.
  struct View {
    std::function<const ps::Bucket*(BucketId bucket, const ps::ServerId&)> bucket;
    std::function<bool(const ps::ServerId&)> lives;
    std::function<const Disk&(std::uint32_t slot)> disk;
  };

  Checker(Scheduler& scheduler, simulation::Violations& violations, const Setup& setup);

  void Look(View view) { view_ = std::move(view); }

  [[nodiscard]] RecordChecker& records() { return records_; }
  [[nodiscard]] SnapshotBooks& snapshots() { return snapshots_; }

  // --- Records and replicas (checker.cc)

  /// The controller of this term has stored these records.
  void Stored(std::uint64_t term, const std::vector<controller::Configuration>& records);

  /// A replica has done something.
  void Watch(BucketId bucket, const ps::ServerId& server, const ps::Replica& replica);

  /// A replica says that it has everything up to `acked` of this configuration.
  void Promised(BucketId bucket,
                const ps::ServerId& server,
                ConfigurationVersion configuration_version);

  /// A replica commits an entry.
  void Committed(BucketId bucket,
                 const ps::ServerId& server,
                 const ps::Replica& replica,
                 const ps::Entry& entry);

  /// The bucket's record has this generation: later ones void what earlier ones hold.
  [[nodiscard]] bool IsCurrent(BucketId bucket, std::uint64_t generation) const {
    return buckets_[bucket].record.generation == generation;
  }

  /// Of the replicas that served the bucket last, before they were all lost, one had a disk that
  /// has lied.
  [[nodiscard]] bool LastReplicasLied(BucketId bucket) const;

  /// The replicas that served the bucket last, before they were all lost.
  [[nodiscard]] const std::vector<ps::ServerId>& LastMembers(BucketId bucket) const {
    return buckets_[bucket].last_members;
  }

  /// All replicas of a bucket have ended, and what the last that served it had stored, if anything,
  /// may be gone.
  [[nodiscard]] bool MayBeLost(BucketId bucket) const;

  // --- Updates (update_checks.cc)

  /// A committed update was applied; `content` is the shard with it.
  void Applied(const ps::LoggedUpdate& update, const ps::ShardContent& content);

  /// A writer is told that its update is applied.
  void Acknowledged(ShardId shard, const UpdateKey& key);

  /// A primary begins to serve what it holds.
  void Serves(const ps::Configuration& record, const ps::Bucket& bucket, BucketId id);

  /// Somebody could read all of a bucket.
  void Read(BucketId id, const ps::ServerId& server, const ps::Bucket& bucket);

  /// Somebody has read a shard.
  void Fetched(const ps::ServerId& server, const ps::ShardValue& value);

  /// Updates of single shards.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] std::uint64_t rolled_back() const { return rolled_back_; }

  // --- Disks (disk_checks.cc)

  /// A server's shard goes to its disk, or to another server as part of a copy.
  void Leaves(const ps::ServerId& server, ShardId shard, std::string_view stored);

  /// A bucket is about to be loaded from a disk, which holds this.
  void Loads(BucketId id, const ps::StoredContent& stored);

  /// A bucket comes back from a disk, which held this, after all its replicas were lost. What was
  /// acknowledged before `safe` must be there.
  void Restored(BucketId id,
                const ps::StoredContent& stored,
                const ps::Bucket& bucket,
                Clock::TimePoint safe);

  /// The job has gone back: a bucket comes back from a snapshot of this slot, or is made anew.
  void WentBack(BucketId id, std::uint32_t slot, std::uint64_t snapshot, const ps::Bucket& bucket);
  void MadeAnew(BucketId id, const ps::Bucket& bucket);

  [[nodiscard]] const ShardLayout& layout() const { return layout_; }

 private:
  struct Taken {
    UpdateKey key;
    Sequence sequence = 0;  // under which it was taken
  };
  struct Item {
    Taken taken;
    std::uint64_t hash = 0;    // of the shard with it
    std::uint64_t values = 0;  // hash of its values
    bool acknowledged = false;
    Clock::TimePoint acknowledged_at{};
  };
  /// The updates that a shard has taken, which need not be the first of those committed.
  using Branch = std::vector<Taken>;
  struct ShardHistory {
    explicit ShardHistory(const ParameterOptimiser& optimiser) : reference(optimiser) {}

    std::vector<Item> items;
    std::map<UpdateKey, std::size_t> index;
    std::size_t acknowledged = 0;  // the last that is, from 1
    ReferenceShard reference;
    // What logs have made of the shard where it was loaded: it is stored, and comes back, also
    // where it has never been served; and what was committed until another disk came back. By hash.
    std::map<std::uint64_t, Branch> branches;
  };
  /// What was committed in one generation.
  struct Generation {
    std::vector<ConfigurationVersion> origins;         // of lsn 1, 2, …
    std::map<ShardId, std::vector<ps::Lsn>> touching;  // entries, in order
  };
  struct BucketHistory {
    std::map<ConfigurationVersion, ps::ServerId> primaries;
    std::map<std::uint64_t, Generation> generations;
    std::map<ps::ServerId, ConfigurationVersion> epochs;  // that a server has reached
    controller::Configuration record;
    bool served = false;                     // in this generation
    ps::Lsn durable = 0;                     // likewise, as primaries say
    std::vector<ps::ServerId> last_members;  // of the last generation that was served
  };

  [[nodiscard]] bool IsLost(BucketId bucket) const;
  void Report(const std::string& what, BucketId bucket, const ps::ServerId& server);
  void Report(const std::string& what, ShardId shard, const UpdateKey& key);
  [[nodiscard]] bool HasAcknowledged(BucketId id, const ps::Bucket& bucket) const;
  void Tell(BucketId bucket, const controller::Configuration& record);
  void CheckChange(BucketId bucket, const controller::Configuration& record);
  void CheckRestore(BucketId bucket, const controller::Configuration& record);
  void Append(ShardId shard, const Taken& update);
  void Truncate(ShardId shard, std::size_t updates, Clock::TimePoint safe);
  [[nodiscard]] static std::vector<Taken> Logged(const ps::StoredContent& stored,
                                                 const ps::ShardContent& content,
                                                 ShardId shard);
  [[nodiscard]] std::optional<Branch> BranchOf(ShardId shard,
                                               const ps::ShardContent& content) const;
  [[nodiscard]] Branch FirstOf(ShardId shard, std::size_t updates) const;
  void Follow(ShardId shard, const Branch& branch, Clock::TimePoint safe);
  [[nodiscard]] bool IsPrefix(ShardId shard, const ps::ShardContent& content) const;
  void CheckJoined(BucketId bucket, const ps::ServerId& server);
  void CheckReplicas(BucketId bucket, const ps::Replica& replica, const ps::Entry& entry);
  void CheckDurable(BucketId bucket, const controller::Configuration& record);
  [[nodiscard]] bool IsLogged(BucketId bucket,
                              const ps::ServerId& server,
                              const ps::Entry& entry) const;
  [[nodiscard]] bool IsStored(
      const Disk& disk, ShardId shard, std::uint64_t generation, ps::Lsn lsn, bool synced) const;
  [[nodiscard]] std::optional<ps::ShardContent> ReadShard(const Disk& disk,
                                                          ShardId shard,
                                                          bool synced) const;

  Scheduler& scheduler_;
  simulation::Violations& violations_;
  const Setup& setup_;
  const ShardLayout layout_;
  View view_;
  std::vector<BucketHistory> buckets_;
  std::vector<ShardHistory> shards_;
  RecordChecker records_;
  SnapshotBooks snapshots_;
  std::uint64_t term_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t rolled_back_ = 0;
};

}  // namespace adamant::replication_simulation
