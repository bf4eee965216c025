#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace adamant::kube {

/// The texts in a Warning header: `299 - "unknown field", 299 - "another one"`. Several headers are
/// one, joined by commas. What is not of that form is left out. Source: RFC 7234, section 5.5.
std::vector<std::string> ParseWarnings(std::string_view header);

}  // namespace adamant::kube
