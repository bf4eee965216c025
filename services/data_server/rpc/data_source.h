#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/dataset/dataset.h"
#include "services/data_server/core/transform.h"

namespace adamant::v1 {
class DataSource;
}  // namespace adamant::v1

namespace adamant::data_server {

/// What the net expects of the data.
struct DataShape {
  ImageShape image;
  std::uint32_t classes = 0;
};

/// Loads or generates the examples of `source` into memory. `name` ("train") stands in the log;
/// relative paths start at `data_root`.
/// Errors: InvalidArgument or DataLoss for data that cannot be used, naming the file and what was
/// expected; those of the file system as InvalidArgument too, because a restart would not help.
absl::StatusOr<dataset::Dataset> LoadData(const v1::DataSource& source,
                                          const std::string& name,
                                          const std::string& data_root,
                                          const DataShape& shape);

}  // namespace adamant::data_server
