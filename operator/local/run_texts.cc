#include "operator/local/run_texts.h"

#include <utility>

#include "operator/local/model/model_check.h"
#include "operator/local/state/resumption.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::local {

std::vector<std::string> TextsAtStart(const controller::JobController& controller,
                                      const v1::TrainingJob& job,
                                      const RunPaths& paths,
                                      const std::vector<std::string>& warnings,
                                      const std::vector<std::string>& changes) {
  std::vector<std::string> texts = warnings;
  if (!controller.IsOver()) {
    for (const std::string& change : changes) {
      texts.push_back("changed since the run was started: " + change);
    }
  } else if (!changes.empty()) {
    texts.push_back(NothingTaken(job, paths, changes));
  }
  if (controller.HasTrainedAll()) {
    if (std::string idle = NoEffect(job, paths, changes); !idle.empty()) {
      texts.push_back(std::move(idle));
    }
  }
  if (controller.state().phase == controller::Phase::kSucceeded) {
    for (std::string& damage : CheckModel(job, paths)) {
      texts.push_back(std::move(damage));
    }
  }
  return texts;
}

}  // namespace adamant::local
