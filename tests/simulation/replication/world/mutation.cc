#include "tests/simulation/replication/world/mutation.h"

#include <iterator>

namespace adamant::replication_simulation {

std::string_view NameOf(Mutation mutation) {
  constexpr std::string_view kNames[] = {"None",
                                         "NoDeduplication",
                                         "NoEpochFencing",
                                         "RestartKeepsMembership",
                                         "LearnerNotJoint",
                                         "EarlyAdd",
                                         "StaleCopyCounts",
                                         "FollowerCutsLog",
                                         "CommitsUnacknowledged",
                                         "MajorityCommits",
                                         "BadClock",
                                         "LeaseFromReceipt",
                                         "ReadsWithoutLease",
                                         "ReadsBeforeReconciled",
                                         "BlindWrites",
                                         "NoTerms",
                                         "ReleaseOnSuspicion",
                                         "ProofBySlot",
                                         "ReleasedWhileServing",
                                         "MinInSyncIgnored",
                                         "AckBeforePersisted",
                                         "LyingDisks",
                                         "NeverFlushes",
                                         "PersistsUncommitted",
                                         "StaleRestore"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastMutation) + 1);
  return kNames[static_cast<std::size_t>(mutation)];
}

}  // namespace adamant::replication_simulation
