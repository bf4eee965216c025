#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// Interface for what one replica of a bucket asks of the server that it lives in. Called from
/// within the replica's methods, which must not be called back. Threads: that of the call; one at a
/// time for each replica.
class ReplicaHost {
 public:
  virtual ~ReplicaHost() = default;

  /// Hands a message to the network; it may get lost.
  virtual void Send(const ServerId& to, PeerMessage message) = 0;

  /// Hands a proposal to the controller; it may get lost.
  virtual void Propose(const Proposal& proposal) = 0;

  /// Store the entry, which counts only then (Options::logging), after erasing all that is stored
  /// from its lsn on; then call Persisted with the ticket. Tickets are stored in their order.
  virtual void Persist(BucketId bucket, const EntryPtr& entry, std::uint64_t ticket) = 0;

  /// The entry is committed: apply it. In the order of the log.
  virtual void Commit(BucketId bucket, const EntryPtr& entry) = 0;

  /// Primary: create the bucket (it has never existed) or load what is stored; then call Loaded.
  virtual void Load(BucketId bucket, bool create) = 0;

  /// Primary: the bucket is served under a new configuration.
  virtual void Serving(BucketId bucket) = 0;

  /// This server is no primary of the bucket any more: what waits for an acknowledgement here is to
  /// be asked again elsewhere.
  virtual void Demoted(BucketId bucket) = 0;

  /// Primary: send all that the bucket holds, including what is committed up to `base`, to a
  /// learner, naming `copy`; then call Copied. A copy begun before is given up. CopyBegin must be
  /// on its way before this returns: entries follow at once, and count for nothing before it.
  virtual void StartCopy(BucketId bucket,
                         const ServerId& learner,
                         std::uint64_t copy,
                         Lsn base) = 0;
  virtual void StopCopy(BucketId bucket) = 0;

  /// Learner: this copy begins, parts of it follow, and what is stored of the bucket counts for
  /// nothing; call Installed when all of it is there.
  virtual void Learn(BucketId bucket, const CopyBegin& begin) = 0;

  /// This server holds the bucket no longer, or is to learn it anew: forget it, and a Load under
  /// way.
  virtual void Clear(BucketId bucket) = 0;
};

}  // namespace adamant::parameter_server
