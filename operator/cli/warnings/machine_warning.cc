#include "operator/cli/warnings/machine_warning.h"

#include <cstdint>

#include "operator/cli/console/text.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/counted.h"

namespace adamant::cli {
namespace {

// Of two processors 128 data servers took 99 s to train an epoch of digits, one took 1.5 s.
constexpr std::uint64_t kMostOfAProcessor = 16;

// With as many a job trains as well as with fewer, on processors that do nothing else.
constexpr std::uint64_t kFewOfAProcessor = 4;

}  // namespace

std::string CrowdText(const v1::TrainingJob& job, std::size_t processors) {
  const v1::Distribution& distribution = job.spec().distribution();
  const auto processes = static_cast<std::uint64_t>(distribution.workers()) +
                         static_cast<std::uint64_t>(distribution.parameter_servers().count()) +
                         static_cast<std::uint64_t>(distribution.data_servers());
  if (job.spec().has_pods() || processes <= kFewOfAProcessor * processors) {
    return "";
  }
  return std::to_string(processes) + " processes share " + Counted(processors, "processor") +
         ", which may be why: try fewer parameter servers, workers or data servers";
}

std::string MachineWarning(const v1::TrainingJob& job, std::size_t processors) {
  if (job.spec().has_pods() || !local::CheckOneMachine(job).ok()) {
    return "";
  }
  const v1::Distribution& distribution = job.spec().distribution();
  const auto workers = static_cast<std::uint64_t>(distribution.workers());
  const auto servers = static_cast<std::uint64_t>(distribution.parameter_servers().count());
  const auto data_servers = static_cast<std::uint64_t>(distribution.data_servers());
  const std::uint64_t processes = workers + servers + data_servers;
  if (processes <= kMostOfAProcessor * processors) {
    return "";
  }
  const char* const most = data_servers >= workers && data_servers >= servers ? "dataServers"
                           : servers >= workers ? "parameterServers.count"
                                                : "workers";
  return Text(
      "spec.distribution.%s: %llu processes (%s, %s, %s) are more than the %zu %s of this "
      "machine can serve: each takes its time and memory to start, all wait for each other, and "
      "those that are silent for too long are given up. On "
      "one machine, as many workers as processors, 3 parameter servers and 1 data server are "
      "enough",
      most,
      Wide(processes),
      Counted(workers, "worker").c_str(),
      Counted(servers, "parameter server").c_str(),
      Counted(data_servers, "data server").c_str(),
      processors,
      processors == 1 ? "processor" : "processors");
}

}  // namespace adamant::cli
