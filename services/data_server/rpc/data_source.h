#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/dataset/dataset.h"
#include "services/data_server/core/batches/transform.h"
#include "services/data_server/rpc/locate_data.h"

namespace adamant::data_server {

/// Shape that the net expects of the data.
struct DataShape {
  ImageShape image;
  std::uint32_t classes = 0;
};

/// A data set that may be used before all of it is there. Threads: any.
struct LoadedData {
  std::shared_ptr<const dataset::Dataset> set;
  std::function<void(std::uint64_t example)> fetch{};  ///< BatchBuilderOptions; keeps what it uses
};

/// Loads or fetches the examples of `source` into memory; digits are generated, and images of files
/// that are not compressed read, as they are asked for, and meanwhile. Where such a file cannot be
/// read any more the process ends: the next one finds out why. `set`: "train" or "validation".
/// Errors: InvalidArgument or DataLoss for data that cannot be used, beginning with the field that
/// names it, as `adamant validate` says it; Unavailable and others for what a restart may cure;
/// Cancelled when the process is to end.
absl::StatusOr<LoadedData> LoadData(const v1::DataSource& source,
                                    const std::string& set,
                                    const DataPlaces& places,
                                    const DataShape& shape,
                                    service::ControllerLink& controller);

}  // namespace adamant::data_server
