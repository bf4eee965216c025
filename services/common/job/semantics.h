#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "services/common/job/yaml/problems.h"
#include "services/common/model/model.h"

namespace adamant::v1 {
class JobSpec;
class TrainingJob;
}  // namespace adamant::v1

// What no single field's rules can say. Every check passes over values that are absent because
// they have been reported already.
namespace adamant::job {

/// Place of the files of a job's data.
enum class DataPlace {
  kHere,            ///< on this machine; relative paths start at the manifest's folder
  kHereWhole,       ///< the same, and they are read to their ends
  kHereValidation,  ///< the same as kHere, and those of training are not looked at
  kHereUnread,      ///< the same as kHere, and none is looked at
  kElsewhere,       ///< where the data servers will run: nothing can be looked at
};

/// Gives layers without inputs the layer listed before them ("input" for the first).
void ConnectLayers(v1::JobSpec& spec, const Locations& given);

/// Fills in minInSync, whose default depends on the number of copies.
void CompleteServers(v1::JobSpec& spec, const Locations& given);

/// Fills in who runs the optimiser, which depends on its kind.
void CompleteOptimiser(v1::JobSpec& spec, const Locations& given);

/// Makes relative paths on this machine, of data files and of what the job starts from, absolute;
/// they start at `folder`.
void ResolvePaths(v1::JobSpec& spec, const std::filesystem::path& folder);

/// Checks the net: names, shapes, cycles, sizes. Returns its graph if that is right.
std::optional<model::Graph> CheckModel(const v1::TrainingJob& job,
                                       const Locations& given,
                                       Problems& problems);

/// Checks the data sources, against the net if there is one. Returns the number of training
/// examples if that can be told. Looks at files that are here.
std::optional<std::int64_t> CheckData(const v1::JobSpec& spec,
                                      DataPlace place,
                                      const model::Graph* graph,
                                      const Locations& given,
                                      Problems& problems);

/// Checks the parameter servers: copies against their number, time-outs against each other.
void CheckServers(const v1::JobSpec& spec, const Locations& given, Problems& problems);

/// Checks what of the pods' templates the operator relies on.
void CheckPods(const v1::JobSpec& spec, const Locations& given, Problems& problems);

/// Checks that what a job starts from, and what it copies of its checkpoints, is asked for where it
/// can be had.
void CheckStart(const v1::JobSpec& spec,
                DataPlace place,
                const Locations& given,
                Problems& problems);

/// Checks optimiser, distribution and run policy against each other, the net and the data.
void CheckRun(const v1::JobSpec& spec,
              const model::Graph* graph,
              std::optional<std::int64_t> examples,
              const Locations& given,
              Problems& problems);

}  // namespace adamant::job
