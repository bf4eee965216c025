#include "operator/cli/console/print_error.h"

#include <cstdio>

namespace adamant::cli {

void PrintError(std::string_view message) {
  std::fflush(stdout);
  std::fprintf(stderr, "adamant: %.*s\n", static_cast<int>(message.size()), message.data());
}

}  // namespace adamant::cli
