#include "operator/cli/console/table.h"

#include <algorithm>
#include <cstddef>

namespace adamant::cli {

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  if (rows.size() < 2) {
    return "";
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool last = i + 1 == widths.size();
      table += row[i] + (last ? "" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
    table.erase(table.find_last_not_of(' ') + 1);
    table += "\n";
  }
  return table;
}

}  // namespace adamant::cli
