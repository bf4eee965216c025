#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/job/data_problems.h"

namespace adamant::service {
class ControllerLink;
}  // namespace adamant::service

namespace adamant::v1 {
class DataSource;
}  // namespace adamant::v1

namespace adamant::data_server {

/// Folders in which this process finds the data.
struct DataPlaces {
  std::filesystem::path data_root;  ///< relative paths start there; claims are in folders of it
  std::filesystem::path fetched;    ///< what was downloaded is there
};

/// Finds the files of `source`, which is not the generator; fetches those that are elsewhere.
/// `set`: "train" or "validation", the folder of its claim. A path on a claim must lead to
/// something on the claim, by symbolic links too.
/// Errors: InvalidArgument, beginning with the field, for files that are not there; those of
/// FetchData.
absl::StatusOr<job::IdxSource> LocateData(const v1::DataSource& source,
                                          const std::string& set,
                                          const DataPlaces& places,
                                          service::ControllerLink& controller);

/// "spec.data.train.idx.images: …"
std::string AboutField(const std::string& set, const job::DataProblem& problem);

/// An error of reading the files of `source`, with the field that names them: InvalidArgument but
/// for Unavailable and DataLoss, which stay what they are.
absl::Status AboutFiles(const absl::Status& error,
                        const std::string& set,
                        const job::IdxSource& source);

}  // namespace adamant::data_server
