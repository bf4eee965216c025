#pragma once

#include <cstdint>
#include <string_view>

namespace adamant::simulation {

/// Protocol faults put in on purpose, in the adapters or the world around the cores, to show that
/// the checker sees them.
enum class Mutation : std::uint8_t {
  kNone,
  kNoDeduplication,      ///< a parameter server takes a push sent again for a new one
  kNoFencing,            ///< all processes of a worker slot push under one incarnation
  kLeasesNeverEnd,       ///< and data servers never hear that a worker is lost
  kEarlyAcknowledge,     ///< a worker acknowledges a batch when it is trained, before its push is
  kLedgerNotStored,      ///< a parameter server answers the ledger's write without storing it
  kOwnerIgnoresRecord,   ///< a new owner of a part begins with an empty ledger
  kLyingDisk,            ///< sync does nothing
  kNeverFlushes,         ///< changed shards stay in memory
  kInitialisesAgain,     ///< a restarted parameter server makes new shards
  kForgetsIncarnations,  ///< a restarted controller counts incarnations from 1
  kEarlyFlushed,         ///< a worker answers FlushWorker before its pushes are acknowledged
  kSnapshotUnflushed,    ///< the controller's snapshot does not wait for the workers
  kChangedRetry,         ///< a push sent again carries other bytes
  kEvaluatesOtherModel,  ///< a worker evaluates the last epoch's snapshot
  kOneEpochTooMany,      ///< data servers without a controller open one epoch more than there are
  kForgetsUnattended,    ///< a data server does not tell what ended while no controller was there
  kOldPushGetsIn,        ///< pushes from before the job went back reach servers after it
  kLedgerStays,          ///< when the job goes back the ledger does not
};

inline constexpr Mutation kLastMutation = Mutation::kLedgerStays;

std::string_view NameOf(Mutation mutation);

}  // namespace adamant::simulation
