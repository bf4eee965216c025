#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "services/common/rpc/server.h"
#include "services/common/service/member_generations.h"
#include "services/parameter_server/rpc/gate/core_gate.h"

namespace adamant::parameter_server {

/// Returns the slot of the data server that dispatches a part, by the newest map; nothing while
/// there is no map, or no such part.
using PartOwner = std::function<std::optional<std::uint32_t>(std::uint32_t part)>;

/// GetRecord and PutRecord of "adamant.v1.ParameterServer". A data server that has a certificate
/// may write records of its own parts alone, until a later generation of it is a member; it tries
/// again until the maps of both agree. `owner` is called while the gate is open. `gate` and
/// `members` must outlive them. Threads: any.
std::vector<rpc::UnaryMethod> RecordMethods(CoreGate& gate,
                                            const service::MemberGenerations& members,
                                            PartOwner owner);

}  // namespace adamant::parameter_server
