#include "tests/simulation/job/setup/mutation.h"

namespace adamant::simulation {

std::string_view NameOf(Mutation mutation) {
  constexpr std::string_view kNames[] = {"None",
                                         "NoDeduplication",
                                         "NoFencing",
                                         "LeasesNeverEnd",
                                         "EarlyAcknowledge",
                                         "LedgerNotStored",
                                         "OwnerIgnoresRecord",
                                         "LyingDisk",
                                         "NeverFlushes",
                                         "InitialisesAgain",
                                         "ForgetsIncarnations",
                                         "EarlyFlushed",
                                         "SnapshotUnflushed",
                                         "ChangedRetry",
                                         "EvaluatesOtherModel",
                                         "OneEpochTooMany",
                                         "ForgetsUnattended",
                                         "OldPushGetsIn",
                                         "LedgerStays"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastMutation) + 1);
  return kNames[static_cast<std::size_t>(mutation)];
}

}  // namespace adamant::simulation
