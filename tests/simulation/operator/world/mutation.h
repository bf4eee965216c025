#pragma once

#include <cstdint>
#include <string_view>

namespace adamant::orchestration {

/// Faults put in on purpose, between the operator and the API, to show that the checks see them:
/// what the operator would do if it lacked the thing that they take away.
enum class Mutation : std::uint8_t {
  kNone,
  kIgnoresVersions,     ///< the state is written without naming the version that was read
  kReadsOldState,       ///< a new leader gets the state as it was some writes ago
  kRandomNames,         ///< a pod's name does not follow from its generation
  kTakesStrangers,      ///< what carries an expected name counts as this job's
  kForgetsRestarts,     ///< a new leader does not know of earlier restarts
  kNoOwners,            ///< objects do not name the job as their owner
  kMissesDeletions,     ///< caches are not told of pods that went away
  kTrustsLostAnswers,   ///< a pod whose creation did not come through counts as made
  kForgetsStatus,       ///< the status is never written
  kIgnoresScale,        ///< jobs are read with the number of workers that they began with
  kIgnoresRules,        ///< jobs are read without their failure rules
  kConfusesExits,       ///< every exit code is read as 1
  kOverlooksEvictions,  ///< pods are read without what says that they were disrupted
  kJudgesTwice,         ///< a new leader does not know which losses were judged
};

inline constexpr Mutation kLastMutation = Mutation::kJudgesTwice;

std::string_view NameOf(Mutation mutation);

}  // namespace adamant::orchestration
