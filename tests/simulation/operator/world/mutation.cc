#include "tests/simulation/operator/world/mutation.h"

#include <iterator>

namespace adamant::orchestration {

std::string_view NameOf(Mutation mutation) {
  constexpr std::string_view kNames[] = {"None",
                                         "IgnoresVersions",
                                         "ReadsOldState",
                                         "RandomNames",
                                         "TakesStrangers",
                                         "ForgetsRestarts",
                                         "NoOwners",
                                         "MissesDeletions",
                                         "TrustsLostAnswers",
                                         "ForgetsStatus",
                                         "IgnoresScale",
                                         "IgnoresRules",
                                         "ConfusesExits",
                                         "OverlooksEvictions",
                                         "JudgesTwice"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastMutation) + 1);
  return kNames[static_cast<std::size_t>(mutation)];
}

}  // namespace adamant::orchestration
