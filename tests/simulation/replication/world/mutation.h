#pragma once

#include <cstdint>
#include <string_view>

namespace adamant::replication_simulation {

/// Faults of the protocol put in on purpose, in the adapters around the real cores, to show that
/// the checker sees them.
enum class Mutation : std::uint8_t {
  kNone,
  kNoDeduplication,         ///< a primary appends what it has already
  kNoEpochFencing,          ///< messages of older configurations count as if they were of this one
  kRestartKeepsMembership,  ///< a restarted process is taken for the one before
  kLearnerNotJoint,         ///< commits do not wait for the learner that is proposed
  kEarlyAdd,                ///< a learner is added before it has all parts
  kStaleCopyCounts,         ///< what a learner had of an earlier copy counts for a later one
  kFollowerCutsLog,  ///< a replica cuts its log to its commit point when the configuration changes
  kCommitsUnacknowledged,  ///< a replica applies what it has not acknowledged in this configuration
  kMajorityCommits,        ///< an entry is committed when most replicas have it
  kBadClock,               ///< promises are shorter than leases
  kLeaseFromReceipt,       ///< a lease counts from the answer's receipt
  kReadsWithoutLease,      ///< whoever believes to be primary reads
  kReadsBeforeReconciled,  ///< a new primary reads before its log is committed
  kBlindWrites,            ///< the controller takes proposals for any configuration
  kNoTerms,                ///< a controller that was replaced writes records
  kReleaseOnSuspicion,     ///< who is silent is taken for dead
  kProofBySlot,            ///< a proof of death counts for later processes of the slot
  kReleasedWhileServing,   ///< a primary releases its configuration, leaves the record, and serves
                           ///< on
  kMinInSyncIgnored,       ///< a primary commits with fewer replicas than asked for
  kAckBeforePersisted,     ///< logged modes: an entry counts before it is stored
  kLyingDisks,             ///< what is synced is not
  kNeverFlushes,           ///< changed shards stay in memory
  kPersistsUncommitted,    ///< what is prepared is flushed as if it were committed
  kStaleRestore,           ///< a lost bucket comes back from the oldest disk
};

inline constexpr Mutation kLastMutation = Mutation::kStaleRestore;

std::string_view NameOf(Mutation mutation);

}  // namespace adamant::replication_simulation
