#include "operator/cli/warnings/distribution_warning.h"

#include <algorithm>

#include "operator/cli/console/text.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::cli {
namespace {

// Measured: docs/bench/replication.md. Large pushes are few in the time that a disk takes.
constexpr std::uint64_t kEnoughRetained = 32;                             // pushes of a worker
constexpr std::uint64_t kEnoughRetainedBytes = std::uint64_t{256} << 20;  // the default

}  // namespace

std::string ShareWarning(const v1::Distribution& distribution) {
  if (distribution.threads_per_worker() != 1 || distribution.share_every() <= 1) {
    return "";
  }
  return Text(
      "spec.distribution.shareEvery: %d has no effect with one thread (threadsPerWorker: 1), each "
      "of whose batches changes the worker's weights at once; it is best left out",
      distribution.share_every());
}

// With hardly any room each push waits until the one before is on disk.
std::string RetainWarning(const v1::Distribution& distribution, std::uint64_t push_bytes) {
  const v1::Persistence& persistence = distribution.parameter_servers().persistence();
  const auto retain = static_cast<std::uint64_t>(persistence.retain());
  const std::uint64_t enough = std::min(kEnoughRetained * push_bytes, kEnoughRetainedBytes);
  if (persistence.mode() == v1::Persistence::MODE_NONE || retain == 0 || retain >= enough) {
    return "";
  }
  return Text(
      "spec.distribution.parameterServers.persistence.retain: %llu bytes have room for %llu of "
      "the pushes, of %llu bytes each, that a worker keeps until they are on disk: workers "
      "wait for the disk, and train slower. %lluMi are enough; with 0 they "
      "keep nothing and do not wait",
      Wide(retain),
      Wide(retain / push_bytes),
      Wide(push_bytes),
      Wide((enough + (std::uint64_t{1} << 20) - 1) >> 20));
}

}  // namespace adamant::cli
