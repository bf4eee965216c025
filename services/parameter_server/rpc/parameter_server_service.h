#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "services/common/service/service.h"

namespace adamant::parameter_server {

/// The parameter server as RunService drives it. Its shards lie in the folder "shards" of the data
/// folder.
absl::StatusOr<std::unique_ptr<service::Service>> MakeParameterServer(
    const service::ServiceContext& context);

}  // namespace adamant::parameter_server
