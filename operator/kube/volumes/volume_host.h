#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace adamant::kube {

/// The host name of the one node that a PersistentVolume can be used on, as its node affinity says;
/// empty: there are several, or it does not say.
std::string HostOfVolume(const nlohmann::json& volume);

}  // namespace adamant::kube
