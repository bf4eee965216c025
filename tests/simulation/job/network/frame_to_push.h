#pragma once

#include "services/parameter_server/core/updates/messages.h"
#include "tests/simulation/job/network/messages.h"

namespace adamant::simulation {

/// Returns what a server receives: the push owns its bytes.
parameter_server::Push ToParameterServer(const parameter_server::WorkerId& writer,
                                         const PushFrame& frame);

}  // namespace adamant::simulation
