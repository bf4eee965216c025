#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/core/state/messages.h"

/// Rules for what follows from the loss of a process: spec.runPolicy.failureRules.
namespace adamant::controller {

/// Way in which a process was lost.
enum class LossCause : std::uint8_t {
  kExit,        ///< it ended by itself, could not be started, was silent or made no progress
  kDisruption,  ///< it was ended from outside: evicted, preempted or deleted
  kNodeLost,    ///< nothing is heard of the machine that it ran on
};

/// Reason why a process was lost, as users count it.
enum class LossReason : std::uint8_t {
  kFailed,        ///< it ended by itself, or could not be started
  kOutOfMemory,   ///< its container was ended for want of memory
  kEvicted,       ///< evicted, preempted or refused by its node
  kNodeLost,      ///< nothing is heard of the machine that it ran on
  kUnresponsive,  ///< it was silent, did not join, or made no progress
  kDeleted,       ///< somebody has deleted its pod
};

inline constexpr LossReason kLossReasons[] = {LossReason::kFailed,
                                              LossReason::kOutOfMemory,
                                              LossReason::kEvicted,
                                              LossReason::kNodeLost,
                                              LossReason::kUnresponsive,
                                              LossReason::kDeleted};

/// "OutOfMemory".
std::string_view LossReasonName(LossReason reason);

/// It was ended from outside, on purpose.
inline bool IsDisruption(LossReason reason) {
  return reason == LossReason::kEvicted || reason == LossReason::kDeleted;
}

/// Facts that are known of a loss.
struct ProcessLoss {
  std::string how{};  ///< "was killed by signal 9"; continues "worker-1 …"
  LossCause cause = LossCause::kExit;
  std::optional<int> exit_code{};  ///< 128 + its number where a signal ended it; absent: not known
  bool bad_configuration = false;  ///< another start would end the same way
  bool cannot_run = false;         ///< likewise, as its machine does not let it run
  LossReason reason = LossReason::kFailed;
  bool intended = false;  ///< by the operator itself: no rule is for that
};

enum class LossAction : std::uint8_t {
  kRestart,  ///< another process, at the cost of the restart budget
  kFail,     ///< the job fails
  kIgnore,   ///< another process at no cost
};

/// A rule fits a loss by its cause if its lists, where they are not empty, hold the exit code and
/// the role.
struct FailureRule {
  LossCause cause = LossCause::kExit;
  std::vector<int> exit_codes{};
  std::vector<Role> roles{};
  LossAction action = LossAction::kRestart;
};

struct Verdict {
  LossAction action = LossAction::kRestart;
  std::string rule{};  ///< that decided: "spec.runPolicy.failureRules[1]"; empty: none fits
};

/// The first rule that fits decides. Where none does, a bad configuration fails the job, and so
/// does a machine that does not let a process run; another exit costs a restart, and what was not
/// the process's own doing costs nothing.
Verdict Judge(std::span<const FailureRule> rules, Role role, const ProcessLoss& loss);

}  // namespace adamant::controller
