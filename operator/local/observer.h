#pragma once

#include <string>

#include "operator/core/job/job_controller.h"
#include "operator/core/state/actions.h"

namespace adamant::local {

/// Watches a run, for people or machines.
/// Threads: called on the thread that runs the job.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void OnNote(const controller::Note& note) = 0;
  virtual void OnEpoch(const controller::EpochResult& result) = 0;

  /// Several times a second.
  virtual void OnProgress(const controller::JobReport& report) = 0;
};

}  // namespace adamant::local
