#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace adamant::kubectl {

/// Tells how often a job's processes were restarted in its life, by role and by what had happened
/// to them: "worker 3 (2 OutOfMemory, 1 Evicted), data-server 1 (1 Failed)"; "" if none was.
std::string RestartsText(const nlohmann::json& job);

}  // namespace adamant::kubectl
