#pragma once

#include "absl/status/status.h"

namespace grpc {
class Status;
}  // namespace grpc

namespace adamant::rpc {

/// Same code and message in the other library's type. Threads: any.
absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace adamant::rpc
