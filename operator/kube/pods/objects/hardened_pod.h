#pragma once

#include <nlohmann/json_fwd.hpp>

namespace adamant::kube {

/// Folder of our container that its data is in.
inline constexpr char kDataFolder[] = "/data";

/// Returns what each container of ours says of its rights: none. For "securityContext".
nlohmann::json HardenedContainer();

/// A pod of one container that the Pod Security level `restricted` lets pass: no root, no rights,
/// no access to the API. Its user may write to its volumes. Without volumes.
nlohmann::json HardenedPod(const nlohmann::json& metadata, const nlohmann::json& container);

}  // namespace adamant::kube
