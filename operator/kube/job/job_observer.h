#pragma once

#include <variant>

#include "operator/core/state/actions.h"

namespace adamant::kube {

/// Is told what the controllers of jobs measure. Threads: any.
class JobObserver {
 public:
  virtual ~JobObserver() = default;

  /// A process of a job starts again, as the last one was lost so.
  virtual void OnRestart(controller::Role role, controller::LossReason cause) = 0;

  /// Calls the function below that is for this action, if there is one.
  void OnAction(const controller::Action& action) {
    if (const auto* phase = std::get_if<controller::FailoverPhase>(&action)) {
      OnFailoverPhase(*phase);
    } else if (const auto* promoted = std::get_if<controller::Promoted>(&action)) {
      OnPromoted(*promoted);
    }
  }

 private:
  virtual void OnFailoverPhase(const controller::FailoverPhase& phase) = 0;
  virtual void OnPromoted(const controller::Promoted& promoted) = 0;
};

}  // namespace adamant::kube
