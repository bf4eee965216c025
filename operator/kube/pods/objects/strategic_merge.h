#pragma once

#include <nlohmann/json_fwd.hpp>

namespace adamant::kube {

/// Merges `patch` into a pod or a part of it as `kubectl patch --type strategic` does: objects
/// field by field, null deletes a field, lists whose elements have a key (containers, volumes, env,
/// …) by that key, others replace what was there. A list element with "$patch": "delete" is taken
/// out.
void StrategicMerge(nlohmann::json& target, const nlohmann::json& patch);

}  // namespace adamant::kube
