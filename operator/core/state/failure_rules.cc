#include "operator/core/state/failure_rules.h"

#include <algorithm>
#include <cstddef>

namespace adamant::controller {
namespace {

bool Fits(const FailureRule& rule, Role role, const ProcessLoss& loss) {
  const bool any_code = rule.exit_codes.empty();
  const bool any_role = rule.roles.empty();
  return rule.cause == loss.cause &&
         (any_code || (loss.exit_code && std::ranges::count(rule.exit_codes, *loss.exit_code))) &&
         (any_role || std::ranges::count(rule.roles, role));
}

LossAction ActionWithoutRule(const ProcessLoss& loss) {
  if (loss.cause != LossCause::kExit) {
    return LossAction::kIgnore;
  }
  return loss.bad_configuration || loss.cannot_run ? LossAction::kFail : LossAction::kRestart;
}

}  // namespace

std::string_view LossReasonName(LossReason reason) {
  switch (reason) {
    case LossReason::kFailed:
      return "Failed";
    case LossReason::kOutOfMemory:
      return "OutOfMemory";
    case LossReason::kEvicted:
      return "Evicted";
    case LossReason::kNodeLost:
      return "NodeLost";
    case LossReason::kUnresponsive:
      return "Unresponsive";
    case LossReason::kDeleted:
      return "Deleted";
  }
  return "Failed";
}

Verdict Judge(std::span<const FailureRule> rules, Role role, const ProcessLoss& loss) {
  if (loss.intended) {
    return {.action = LossAction::kIgnore, .rule = ""};
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (Fits(rules[i], role, loss)) {
      return {.action = rules[i].action,
              .rule = "spec.runPolicy.failureRules[" + std::to_string(i) + "]"};
    }
  }
  return {.action = ActionWithoutRule(loss), .rule = ""};
}

}  // namespace adamant::controller
