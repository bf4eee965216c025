#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace adamant::service {
class ControllerLink;
}  // namespace adamant::service

namespace adamant::v1 {
class Download;
}  // namespace adamant::v1

namespace adamant::data_server {

/// Fetches a file of the job's data into `folder`, which it makes, and returns its path: the same
/// in every process, so that what is there already is not fetched again. The log and the controller
/// are told every few seconds how far it is. `field`: "spec.data.train.download.images".
/// Threads: any; blocks.
/// Errors: those of fetch::FetchFile, beginning with the field to blame.
absl::StatusOr<std::string> FetchData(const v1::Download& download,
                                      const std::string& field,
                                      const std::filesystem::path& folder,
                                      service::ControllerLink& controller);

}  // namespace adamant::data_server
