#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "services/common/protocol/work.h"
#include "services/data_server/rpc/locate_data.h"

namespace adamant::v1 {
class Welcome;
}

namespace adamant::data_server {

/// The files of the job's data that have a path, with their fingerprints, compared with those of
/// `welcome` that the job began with. Reads no more of them than job::FingerprintFiles.
/// Errors: InvalidArgument, beginning with the field, for a file that is another one; those of
/// LocateData and AboutFiles.
absl::StatusOr<std::vector<protocol::DataFile>> CheckFiles(const v1::Welcome& welcome,
                                                           const DataPlaces& places,
                                                           service::ControllerLink& controller);

}  // namespace adamant::data_server
