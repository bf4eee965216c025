#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/copies.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/driver.h"
#include "services/parameter_server/core/replication/replica.h"
#include "services/parameter_server/core/shards/live_shard.h"
#include "services/parameter_server/core/shards/push_state.h"
#include "services/parameter_server/core/shards/shard_content.h"

namespace adamant::parameter_server {

/// Callers that wait for an entry to be committed.
struct Waiting {
  struct Answer {
    PushStatePtr push;
    std::size_t index = 0;
    ShardAck ack = {};
  };
  std::vector<Answer> updates = {};     ///< one per update of the entry
  std::vector<Answer> duplicates = {};  ///< of what is in the log up to the entry
  std::vector<RecordDone> puts = {};    ///< one per put of the entry
};

/// A copy that has come and does not count yet.
struct Installing {
  std::uint64_t copy = 0;
  std::uint32_t last_index = 0;  ///< of the part whose acknowledgement says that it counts
};

/// State of one bucket on a server, beside the values of its shards.
/// Threads: one at a time (the server's lock).
class Bucket {
 public:
  /// `shards`: how many belong to the bucket.
  Bucket(std::unique_ptr<Replica> replica, std::size_t shards);

  [[nodiscard]] Replica& replica() { return *replica_; }
  [[nodiscard]] const Replica& replica() const { return *replica_; }

  /// Returns whether the bucket can be used here.
  [[nodiscard]] Access AccessAt(Clock::TimePoint now) const;

  /// Of a bucket that is served, which is `id`.
  [[nodiscard]] BucketReport ServingReport(BucketId id) const;

  /// Report that what is stored of it cannot be loaded; nullopt: nothing is known to be wrong.
  std::optional<BucketReport> lost;

  // --- Content; shards are named by their position in the bucket

  struct Content {
    std::vector<LiveShardPtr> shards = {};
    std::vector<SequenceTable> sequences = {};
    RecordMap records = {};
    std::uint64_t generation = 0;
    std::uint64_t updates = 0;  ///< applied to the shards since their creation
  };

  void Fill(Content content);

  /// Also forgets who waits and what is copied, and begins another life.
  void Clear();

  /// Returns the present life: what was to be done on disk in an earlier one is void.
  [[nodiscard]] std::uint64_t life() const { return life_; }

  [[nodiscard]] const Content& content() const { return content_; }

  /// All up to this lsn is on the disks of all replicas.
  void RaiseDurable(Lsn durable);

  /// An update or put has been committed.
  void Commit(std::size_t position, const LoggedUpdate& update);
  void Commit(const LoggedPut& put);

  // --- What the primary has appended

  /// Begins to judge: with what is committed and what is in the replica's log. `positions` by
  /// shard.
  void StartHead(const std::vector<std::uint32_t>& positions);

  /// Judges an update by all that was appended before.
  SequenceTable::Verdict Admit(std::size_t position, const LoggedUpdate& update);
  [[nodiscard]] std::uint64_t LastOf(std::size_t position, const WorkerId& writer) const;

  /// The version that a record will have when all is applied.
  [[nodiscard]] std::uint64_t VersionOf(std::string_view key) const;

  /// Returns true if that version is not committed: it may yet be overwritten.
  [[nodiscard]] bool IsOpen(std::string_view key) const { return head_versions_.contains(key); }
  void SetVersion(std::string_view key, std::uint64_t version);

  // --- Who waits, by lsn

  std::map<Lsn, Waiting> waiting;

  // --- Copies

  std::optional<CopySender> sending;
  std::optional<CopyReceiver> receiving;
  std::optional<Installing> installing;

 private:
  const std::unique_ptr<Replica> replica_;
  const std::size_t shards_;
  std::uint64_t life_ = 0;
  Lsn durable_ = 0;  // that the shards know of
  Content content_;
  std::vector<SequenceTable> head_;
  std::map<std::string, std::uint64_t, std::less<>> head_versions_;  // of puts in the log
};

}  // namespace adamant::parameter_server
