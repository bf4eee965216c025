#include "operator/cli/warnings/memory_need.h"

#include "operator/cli/console/text.h"
#include "operator/control/server_memory.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/worker/rpc/job/worker_memory.h"

namespace adamant::cli {
namespace {

constexpr double kMiB = 1 << 20;

// Those that only the data servers will know count as none.
std::uint64_t ExamplesIn(const v1::DataSource& source) {
  return local::ExamplesOf(source).value_or(0);
}

std::uint64_t Total(const std::vector<MemoryNeed>& needs) {
  std::uint64_t total = 0;
  for (const MemoryNeed& need : needs) {
    total += static_cast<std::uint64_t>(need.processes) * need.bytes;
  }
  return total;
}

std::string Size(std::uint64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / kMiB;
  return mebibytes < 1024 ? Text("%.0f MiB", mebibytes) : Text("%.1f GiB", mebibytes / 1024);
}

std::string ByRole(const std::vector<MemoryNeed>& needs) {
  std::string text;
  for (const MemoryNeed& need : needs) {
    text += (text.empty() ? "" : ", ") + need.role + " " +
            (need.processes == 1 ? "" : std::to_string(need.processes) + " x ") + Size(need.bytes);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<MemoryNeed>> MemoryNeeds(const v1::TrainingJob& job) {
  ADAMANT_ASSIGN_OR_RETURN(const std::uint64_t worker, worker::WorkerMemory(job));
  const v1::Data& data = job.spec().data();
  ADAMANT_ASSIGN_OR_RETURN(
      const control::ServerMemory servers,
      control::ServerMemoryOf(
          job, {.train = ExamplesIn(data.train()), .validation = ExamplesIn(data.validation())}));
  const v1::Distribution& distribution = job.spec().distribution();
  return std::vector<MemoryNeed>{
      {"worker", distribution.workers(), worker},
      {"parameter server", distribution.parameter_servers().count(), servers.parameter_server},
      {"data server", distribution.data_servers(), servers.data_server},
      {"controller", 1, servers.controller}};
}

std::string MemoryLine(const std::vector<MemoryNeed>& needs, std::optional<std::uint64_t> free) {
  return "memory: " + ByRole(needs) + ": about " + Size(Total(needs)) + " in all" +
         (free ? ", of " + Size(*free) + " that are free here" : "") + "\n";
}

std::string MemoryWarning(const std::vector<MemoryNeed>& needs, std::optional<std::uint64_t> free) {
  if (!free || Total(needs) <= *free) {
    return "";
  }
  return "the job needs about " + Size(Total(needs)) + " of memory, and " + Size(*free) +
         " are free here: " + ByRole(needs) +
         "; processes may be killed. Fewer workers or threads, a smaller net, fewer copies or a "
         "smaller spec.distribution.parameterServers.persistence.retain need less";
}

}  // namespace adamant::cli
