#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/core/messages.h"
#include "services/parameter_server/core/replication/replica.h"
#include "tests/simulation/replication/content.h"
#include "tests/simulation/replication/disk.h"
#include "tests/simulation/replication/setup.h"
#include "tests/simulation/violations.h"

namespace adamant::replication_simulation {

/// Keeps books of its own about every bucket, and compares. Its numbering of promises is that of
/// reliability:
///   I1 one lease-valid primary          I7 logs agree by lsn
///   I2 one primary an epoch             I8 what is stored is a prefix of what is committed
///   I3 nothing accepted below an epoch  I9 who joins has all that is committed
///   I4 committed: at every member       I10 one controller changes records
///   I5 acknowledged: at every primary   I11 a read shows all that was acknowledged before
///   I6 each update at most once         I12 what a total loss takes is bounded
///   I14 nobody who lives leaves fewer than minInSync behind
///   I15 what is durable is on every member's disk
/// Threads: one.
class Checker {
 public:
  /// What it may look at, in the processes that live.
  struct View {
    std::function<const ps::Replica*(std::uint32_t bucket, const ps::Holder&)> replica;
    std::function<const Content*(std::uint32_t bucket, const ps::Holder&)> content;
    std::function<bool(const ps::Holder&)> lives;
    std::function<const Disk&(std::uint32_t slot)> disk;
  };

  Checker(Scheduler& scheduler, simulation::Violations& violations, const Setup& setup);

  void Look(View view) { view_ = std::move(view); }

  /// The controller of this term has stored these records.
  void Stored(std::uint64_t term, const std::vector<controller::Bucket>& records);

  /// A replica has done something.
  void Watch(std::uint32_t bucket, const ps::Holder& holder, const ps::Replica& replica);

  /// A replica says that it has everything up to `acked` of this epoch.
  void Promised(std::uint32_t bucket, const ps::Holder& holder, ps::Epoch epoch);

  /// A replica commits an entry.
  void Committed(std::uint32_t bucket,
                 const ps::Holder& holder,
                 const ps::Replica& replica,
                 const ps::Entry& entry);

  /// The bucket's record has this generation: later ones void what earlier ones hold.
  [[nodiscard]] bool IsCurrent(std::uint32_t bucket, std::uint64_t generation) const {
    return buckets_[bucket].record.generation == generation;
  }

  /// An update was applied; `state` is the shard with it.
  void Applied(std::uint32_t bucket,
               std::uint32_t shard,
               const ps::LoggedUpdate& update,
               const ShardState& state);

  /// A writer is told that its update is applied.
  void Acknowledged(std::uint32_t bucket,
                    std::uint32_t shard,
                    const ps::Writer& writer,
                    std::uint64_t sequence);

  /// A primary begins to serve what it holds.
  void Serves(std::uint32_t bucket, const ps::Configuration& record, const Content& content);

  /// Somebody reads all of a bucket.
  void Read(std::uint32_t bucket, const ps::Holder& holder, const Content& content);

  /// This goes to a disk.
  void Persisted(std::uint32_t bucket, const Content& content);

  /// A bucket comes back from a disk, after all its members were lost: first what was stored, then
  /// the updates that were logged, then that is all. What was acknowledged before `safe` must be
  /// there.
  void Restores(std::uint32_t bucket, const Content& content);
  void Replayed(std::uint32_t bucket,
                std::uint32_t shard,
                const ps::LoggedUpdate& update,
                const ShardState& state,
                Clock::TimePoint safe);
  void Restored(std::uint32_t bucket, const Content& content, Clock::TimePoint safe);

  /// Of the members that served the bucket last, before they were all lost, the one that died last.
  [[nodiscard]] std::optional<std::pair<ps::Holder, Clock::TimePoint>> LastDeath(
      std::uint32_t bucket, const std::map<ps::Holder, Clock::TimePoint>& deaths) const;

  /// When an update to the bucket was acknowledged last, and for how long none was, where that was
  /// more than a second.
  [[nodiscard]] Clock::TimePoint LastAcknowledgement(std::uint32_t bucket) const {
    return buckets_[bucket].acknowledged_at;
  }
  [[nodiscard]] const std::vector<Interval>& Silences(std::uint32_t bucket) const {
    return buckets_[bucket].silences;
  }

  /// Updates of single shards.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] std::uint64_t rolled_back() const { return rolled_back_; }

 private:
  using UpdateKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // slot … sequence

  struct Item {
    UpdateKey key;
    std::uint64_t hash = 0;
    bool acknowledged = false;
    Clock::TimePoint acknowledged_at{};
  };
  struct ShardHistory {
    std::vector<Item> items;
    std::map<UpdateKey, std::size_t> index;
    std::size_t acknowledged = 0;  // the last that is, from 1
  };
  struct BucketHistory {
    std::vector<ShardHistory> shards;
    std::map<ps::Epoch, ps::Holder> primaries;
    std::map<std::uint64_t, std::vector<ps::Epoch>> origins;  // by generation, of lsn 1, 2, …
    std::map<ps::Holder, ps::Epoch> epochs;                   // that a holder has reached
    controller::Bucket record;
    Clock::TimePoint acknowledged_at{};
    std::vector<Interval> silences;
    bool served = false;                   // in this generation
    ps::Lsn durable = 0;                   // likewise, as primaries say
    std::vector<ps::Holder> last_members;  // of the last generation that was served
  };

  void Report(const std::string& what, std::uint32_t bucket, const ps::Holder& holder);
  [[nodiscard]] bool HasAcknowledged(std::uint32_t bucket, const Content& content) const;
  void Tell(std::uint32_t bucket, const controller::Bucket& record);
  void CheckChange(std::uint32_t bucket, const controller::Bucket& record);
  void Truncate(std::uint32_t bucket,
                std::uint32_t shard,
                std::size_t updates,
                Clock::TimePoint safe);
  void CheckJoined(std::uint32_t bucket, const ps::Holder& holder);
  void CheckMembers(std::uint32_t bucket, const ps::Replica& replica, const ps::Entry& entry);
  void CheckDurable(std::uint32_t bucket, const controller::Bucket& record);
  [[nodiscard]] bool IsLogged(std::uint32_t bucket,
                              const ps::Holder& holder,
                              const ps::Entry& entry) const;

  Scheduler& scheduler_;
  simulation::Violations& violations_;
  const Setup& setup_;
  View view_;
  std::vector<BucketHistory> buckets_;
  std::uint64_t term_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t rolled_back_ = 0;
};

}  // namespace adamant::replication_simulation
