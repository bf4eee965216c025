#pragma once

#include <string>

#include "operator/local/run_folder/run_paths.h"
#include "services/common/job/yaml/changes.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Reason why the mode of a run is never changed from or to `None`.
inline constexpr char kNoneStores[] = "with None, checkpoints alone are stored";

/// Returns whether the change is of the mode, from or to `None`.
bool IsFromOrToNone(const job::FieldChange& change);

/// Returns that a manifest with mistakes changes the mode so, which makes mistakes of what belongs
/// to the mode as it was: a line as Resumption::refused has; "" if it does not, or nothing is known
/// of what the run was started with. Threads: any.
std::string ModeRefusal(const v1::TrainingJob& draft, const RunPaths& paths);

}  // namespace adamant::local
