#pragma once

#include <string>
#include <string_view>

namespace adamant::kube {

/// Returns what to tell of a failure of cpprestsdk: its own words, and its reason as far as that
/// can be trusted. `value` is a number of the system, of TLS, of asio or of the resolver; the
/// library does not say which.
std::string ExplainFailure(std::string_view what, int value);

}  // namespace adamant::kube
