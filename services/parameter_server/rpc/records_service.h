#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "services/parameter_server/rpc/core_gate.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace adamant::parameter_server {

/// The gRPC service of GetRecord and PutRecord. `gate` must outlive it. `fail` is told when a
/// failed sync leaves the store unknown: the process must end. Threads: any.
std::unique_ptr<grpc::Service> MakeRecordsService(CoreGate& gate,
                                                  std::function<void(const absl::Status&)> fail);

}  // namespace adamant::parameter_server
