#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/core/storage/stored_bucket.h"
#include "tests/simulation/replication/processes/sabotage.h"
#include "tests/simulation/replication/processes/world.h"

namespace adamant::replication_simulation {

/// Sits between a server and its replicas: passes on all that they ask of it, and shows it to the
/// checker and the tracer when it happens, not when it is seen from outside.
/// Threads: one.
class Tap final : public ps::ReplicaHost {
 public:
  using SafeBefore = std::function<Clock::TimePoint(BucketId, std::uint32_t slot)>;

  /// All that is referred to must outlive this. `core` is fresh. `safe_before`: what of a bucket
  /// was acknowledged before then must have survived the loss of all its replicas.
  Tap(World& world,
      const ps::ServerId& self,
      ps::ParameterServer& core,
      Sabotage& sabotage,
      SafeBefore safe_before);

  /// What the disk holds when the server reads all of it: that is what comes back if it is damaged
  /// afterwards.
  void LookAtStored(const storage::KvStore& disk);

  /// What the disk holds of buckets that are to come back from it; to be called before they do.
  void LookAtLoads(const storage::KvStore& disk);

  // --- For the tracer

  /// What the primary has appended and not told anybody.
  void TraceAppended(BucketId id);
  void TraceAnswer(const UpdateKey& key);

  /// What the message makes of the configuration, before it does.
  void TraceAdoption(const ps::ServerId& from, const ps::PeerMessage& message);

  // --- ReplicaHost

  void Send(const ps::ServerId& to, ps::PeerMessage message) override;
  void Propose(const ps::Proposal& proposal) override;
  void Persist(BucketId id, const ps::EntryPtr& entry, std::uint64_t ticket) override;
  void Commit(BucketId id, const ps::EntryPtr& entry) override;
  void Load(BucketId id, bool create) override;
  void Serving(BucketId id) override;
  void Demoted(BucketId id) override;
  void StartCopy(BucketId id,
                 const ps::ServerId& learner,
                 std::uint64_t copy,
                 ps::Lsn base) override;
  void StopCopy(BucketId id) override;
  void Learn(BucketId id, const ps::CopyBegin& begin) override;
  void Clear(BucketId id) override;

 private:
  [[nodiscard]] const ps::Bucket& bucket(BucketId id) const;
  [[nodiscard]] absl::StatusOr<ps::StoredContent> Stored(BucketId id,
                                                         const storage::KvStore& disk) const;
  [[nodiscard]] const ps::LiveShard& ShardAt(BucketId id, ShardId shard) const;
  void LookAtRestored(BucketId id, const std::optional<ps::StoredContent>* loaded, bool is_new);
  void TraceSent(const ps::ServerId& to, const ps::PeerMessage& message);
  void TraceEntry(const ps::Entry& entry);

  World& world_;
  const ps::ServerId self_;
  ps::ParameterServer& core_;
  ps::ReplicaHost& host_;
  Sabotage& sabotage_;
  const SafeBefore safe_before_;
  std::map<BucketId, ps::StoredContent> stored_;
  std::map<BucketId, std::optional<ps::StoredContent>> loads_;
  std::set<BucketId> created_;  // that do not come back
  std::optional<std::pair<ConfigurationVersion, ps::Lsn>>
      traced_;                               // the last entry that was appended
  std::optional<ps::ServerId> traced_copy_;  // to this learner, not joint yet
};

}  // namespace adamant::replication_simulation
