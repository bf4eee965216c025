#pragma once

#include <string>
#include <string_view>

#include "services/common/job/yaml/schema.h"

namespace adamant::job {

/// `text` as a YAML scalar that YAML 1.1 and 1.2 read back as the same text: plain where that is
/// possible, else in double quotes.
std::string YamlText(std::string_view text);

/// One value as a manifest writes it.
std::string ScalarText(const Scalar& value, ScalarType type);

}  // namespace adamant::job
