#include "services/common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace adamant {

void CheckFailed(std::string_view condition,
                 std::string_view file,
                 int line,
                 std::string_view message) {
  std::fprintf(stderr,
               "%.*s:%d: check failed: %.*s: %.*s\n",
               static_cast<int>(file.size()),
               file.data(),
               line,
               static_cast<int>(condition.size()),
               condition.data(),
               static_cast<int>(message.size()),
               message.data());
  std::abort();
}

}  // namespace adamant
