#pragma once

#include <string>
#include <string_view>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {

/// Whether an object is selected: "app=web,tier!=db,canary,!old" by its labels,
/// "metadata.name=a,spec.nodeName=b" by its fields. Empty: all are.
bool MatchesLabels(const Json& object, std::string_view selector);
bool MatchesFields(const Json& object, std::string_view selector);

}  // namespace adamant::kube
