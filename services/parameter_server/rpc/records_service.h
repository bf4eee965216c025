#pragma once

#include <memory>

#include "services/parameter_server/rpc/core_gate.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace adamant::parameter_server {

/// The gRPC service of GetRecord and PutRecord. `gate` must outlive it. Threads: any.
std::unique_ptr<grpc::Service> MakeRecordsService(CoreGate& gate);

}  // namespace adamant::parameter_server
