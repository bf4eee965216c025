#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/persistence_mode.h"
#include "services/parameter_server/core/buckets/bucket_table.h"
#include "services/parameter_server/core/replication/messages.h"
#include "services/parameter_server/core/serving/parameter_server_options.h"
#include "services/parameter_server/core/shards/shard_content.h"
#include "services/parameter_server/core/storage/storage_queue.h"
#include "services/parameter_server/core/storage/stored_state.h"

namespace adamant::parameter_server {

/// Moves copies of buckets from their primaries to learners.
/// Threads: any; a Session is the bucket table's lock.
class CopyTransfer {
 public:
  /// Content of a part, in memory.
  struct ReceivedPart {
    LiveShardPtr shard = nullptr;  ///< null: the part is a record
    SequenceTable sequences = {};  ///< of the shard
  };

  /// All that is referred to must outlive this.
  CopyTransfer(BucketTable& table,
               StorageQueue& queue,
               StoredState& stored,
               const Clock& clock,
               const ParameterServerOptions& options);
  CopyTransfer(const CopyTransfer&) = delete;
  CopyTransfer& operator=(const CopyTransfer&) = delete;

  // --- The primary

  /// See ReplicaHost::StartCopy.
  void Start(BucketTable::Session& session,
             BucketId bucket,
             const ServerId& learner,
             std::uint64_t copy,
             Lsn base);

  /// The learner says so.
  void OnAck(BucketTable::Session& session,
             const ServerId& learner,
             BucketId bucket,
             const CopyAck& ack);

  /// Sends a part that is due, which takes time, under no lock.
  void Send(const DuePart& part);

  // --- The learner

  /// See ReplicaHost::Learn.
  void Learn(BucketTable::Session& session, BucketId bucket, const CopyBegin& begin);

  /// Checks and decodes a part, which takes time, under no lock.
  /// Errors: InvalidArgument for a shard outside the model; as DecodeContent.
  [[nodiscard]] absl::StatusOr<ReceivedPart> Decode(const CopyPart& part) const;

  /// A part of a message's bucket has come. `message` holds a CopyPart.
  void OnPart(BucketTable::Session& session,
              const ServerId& primary,
              const PeerMessage& message,
              ReceivedPart part);

  /// The copy is on disk, if that counts: so it is the bucket's.
  void Installed(BucketTable::Session& session, BucketId bucket);

  /// The way to `primary` is open anew: a copy that comes from there begins anew.
  void AskAgain(BucketTable::Session& session, BucketId bucket, const ServerId& primary);

  /// Tells primaries, once per beacon, that copies are still on their way to disk.
  void Tick(BucketTable::Session& session);

 private:
  void PlanParts(BucketTable::Session& session, BucketId bucket);
  void FinishReceiving(BucketTable::Session& session, BucketId bucket);

  // Constant after construction.
  BucketTable& table_;
  StorageQueue& queue_;
  StoredState& stored_;
  const Clock& clock_;
  const PersistenceMode mode_;
  const Clock::Duration report_interval_;

  // Guarded.
  Clock::TimePoint next_report_ ABSL_GUARDED_BY(table_.mutex()){};
};

}  // namespace adamant::parameter_server
