#pragma once

#include <map>
#include <set>
#include <string>

#include "operator/core/state/actions.h"
#include "operator/kube/resources/job_writer.h"
#include "operator/kube/resources/pod_nodes.h"
#include "operator/kube/status/restart_counter.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Tells users as events what happens to a job.
/// Threads: one.
class JobNotes {
 public:
  /// The arguments must outlive this.
  JobNotes(const JobWriter& writer, const PodNodes& nodes, RestartCounter& restarts)
      : writer_(writer), nodes_(nodes), restarts_(restarts) {}

  void Tell(const controller::Note& note);

  /// Tells once what the API does not refuse, but warns of.
  void OnWarning(const std::string& text);

 private:
  const JobWriter& writer_;
  const PodNodes& nodes_;
  RestartCounter& restarts_;
  std::map<controller::Note::Kind, Clock::TimePoint> epochs_;  // when these were told last
  std::set<std::string> warnings_;                             // that were told
};

}  // namespace adamant::kube
