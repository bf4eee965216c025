#pragma once

#include <vector>

#include "services/common/rpc/server.h"
#include "services/parameter_server/rpc/gate/core_gate.h"

namespace adamant::parameter_server {

/// GetRecord and PutRecord of "adamant.v1.ParameterServer". `gate` must outlive them. Threads: any.
std::vector<rpc::UnaryMethod> RecordMethods(CoreGate& gate);

}  // namespace adamant::parameter_server
