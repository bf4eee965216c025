#include "services/common/base/system/thread_affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace adamant {
namespace {

/// Empty when the system does not say.
cpu_set_t Usable() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof(cpus), &cpus);
  return cpus;
}

}  // namespace

std::size_t UsableCpus() {
  const cpu_set_t cpus = Usable();
  return static_cast<std::size_t>(std::max(CPU_COUNT(&cpus), 1));
}

absl::Status PinThread(std::size_t index) {
  const cpu_set_t cpus = Usable();
  std::size_t skip = index % UsableCpus();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus) && skip-- == 0) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  if (sched_setaffinity(0, sizeof(one), &one) != 0) {
    return absl::InternalError("cannot pin a thread to a CPU: " +
                               std::generic_category().message(errno));
  }
  return absl::OkStatus();
}

}  // namespace adamant
