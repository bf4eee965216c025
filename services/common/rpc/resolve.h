#pragma once

#include <string>
#include <vector>

namespace adamant::rpc {

/// Every address behind `names`, as numbers: one or more host:port, separated by commas. A host
/// may have several (a headless service of Kubernetes has one for each of its pods); they are
/// sorted. A name that cannot be resolved now stands for itself. Waits for the resolver.
std::vector<std::string> Resolve(const std::string& names);

}  // namespace adamant::rpc
