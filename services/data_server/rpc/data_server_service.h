#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/service/service.h"

namespace adamant::data_server {

/// The data server as RunService drives it: loads the data, prepares batches, and serves
/// "/adamant.v1.DataServer/Work". It writes nothing to its data folder.
absl::StatusOr<std::unique_ptr<service::Service>> MakeDataServer(
    const service::ServiceContext& context);

}  // namespace adamant::data_server
