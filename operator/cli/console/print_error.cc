#include "operator/cli/console/print_error.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

#include "operator/cli/console/output_file.h"
#include "operator/cli/console/text.h"

namespace adamant::cli {
namespace {

constexpr std::size_t kMostProblems = 20;  // what fits a screen

}  // namespace

void PrintError(std::string_view message) {
  FlushOutput().IgnoreError();  // at the end somebody looks
  std::fprintf(stderr, "adamant: %s\n", InLines(std::string(message)).c_str());
}

void PrintProblems(const std::vector<job::Diagnostic>& problems) {
  const std::size_t shown = std::min(problems.size(), kMostProblems);
  for (std::size_t i = 0; i < shown; ++i) {
    std::fprintf(stderr, "%s\n", job::Format(problems[i]).c_str());
  }
  if (shown < problems.size()) {
    std::fprintf(stderr, "and %zu more\n", problems.size() - shown);
  }
}

}  // namespace adamant::cli
