#pragma once

#include <string>
#include <vector>

namespace adamant::cli {

/// Rows of a table below each other, with two spaces between columns; the first row is the heading.
/// "" if there is no other.
std::string Table(const std::vector<std::vector<std::string>>& rows);

}  // namespace adamant::cli
