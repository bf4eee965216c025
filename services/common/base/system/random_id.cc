#include "services/common/base/system/random_id.h"

#include <sys/random.h>

#include <cerrno>

#include "services/common/base/check.h"

namespace adamant {

std::uint64_t RandomId() {
  std::uint64_t id = 0;
  while (id == 0) {
    const ssize_t read = getrandom(&id, sizeof(id), 0);
    ADAMANT_CHECK(read == sizeof(id) || errno == EINTR,
                  "getrandom gives random numbers, as Linux does since 3.17");
  }
  return id;
}

}  // namespace adamant
