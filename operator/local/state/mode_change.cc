#include "operator/local/state/mode_change.h"

#include <algorithm>
#include <vector>

#include "operator/local/state/resumption.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::local {

bool IsFromOrToNone(const job::FieldChange& change) {
  return change.path.ends_with(".persistence.mode") &&
         (change.before == "None" || change.after == "None");
}

std::string ModeRefusal(const v1::TrainingJob& draft, const RunPaths& paths) {
  const auto started = ReadStart(paths);
  if (!started.ok() || *started == nullptr) {
    return "";
  }
  const std::vector<job::FieldChange> changes = job::ChangesBetween(**started, draft);
  const auto mode = std::ranges::find_if(changes, IsFromOrToNone);
  return mode == changes.end() ? "" : job::Format(*mode) + " (" + kNoneStores + ")";
}

}  // namespace adamant::local
