#include "operator/cli/warnings/memory_need.h"

#include <algorithm>
#include <utility>

#include "operator/cli/console/text.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/tensor/shape.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/learner/thread_channel.h"
#include "services/worker/rpc/worker_job.h"

namespace adamant::cli {
namespace {

constexpr double kMiB = 1 << 20;

// What each process has before it knows of parameters and data: programs, libraries, threads.
constexpr double kWorkerBase = 56 * kMiB;
constexpr double kServerBase = 60 * kMiB;
constexpr double kDataBase = 24 * kMiB;
constexpr double kControllerBase = 50 * kMiB;

// Pushes that a worker keeps as they are not on the servers' disks yet; their bytes have a limit.
constexpr double kRetainedPushes = 8;

// In sizes of the parameters that a server holds: with their snapshot and messages on their way.
constexpr double kServerAlone = 2.3;
constexpr double kServerReplicated = 2.8;
constexpr double kUpdatesForCopies = 4;  // that the other copies do not have yet, within a limit
constexpr double kMostUpdatesForCopies = 64 * kMiB;

// An example lies in its source and, with what is drawn or transformed, in the cache.
constexpr double kDataCopies = 1.6;

// In sizes of all parameters: the plan of the net, which is timed first, and the model at the end.
constexpr double kControllerCopies = 4.9;

double InputElements(const model::Graph& graph) {
  return static_cast<double>(ElementCount(graph.input).value_or(0));
}

double ParameterBytes(const worker::WorkerJob& job) {
  return static_cast<double>(job.plan.elements) * sizeof(float);
}

/// What a step keeps for its way back, of one thread, with the examples as numbers.
double ActivationBytes(const worker::WorkerJob& job) {
  double elements = InputElements(job.graph);
  for (const model::Graph::Node& node : job.graph.nodes) {
    elements += static_cast<double>(ElementCount(node.output).value_or(0));
  }
  return elements * sizeof(float) * static_cast<double>(job.options.batch_size);
}

/// Batches as they came, of one thread, a byte an element: those ahead of need, the one that is
/// trained on and the one that comes in.
double BatchBytes(const worker::WorkerJob& job) {
  return static_cast<double>((job.options.prefetch + 2) * job.options.batch_size) *
         InputElements(job.graph);
}

double WorkerBytes(const worker::WorkerJob& job, double retain) {
  const double all = ParameterBytes(job);
  const double accumulator = static_cast<double>(worker::Accumulator::BytesOf(job.plan));
  const double state = static_cast<double>(job.plan.StateSize()) * sizeof(float);
  const double shared = (job.options.correct ? 4 : 3) * all;  // weights, fetched, evaluated; ahead
  const double thread = worker::ThreadChannel::kAccumulators * accumulator + state + all +
                        (job.options.share_every > 1 ? all : 0) + ActivationBytes(job) +
                        BatchBytes(job);
  const double kept = std::min(kRetainedPushes * accumulator, retain);
  return kWorkerBase + shared + static_cast<double>(job.options.threads) * thread + kept;
}

double ServerBytes(const v1::ParameterServers& servers, double all) {
  const double held = all * servers.copies() / servers.count();
  return servers.copies() == 1 ? kServerBase + kServerAlone * held
                               : kServerBase + kServerReplicated * held +
                                     std::min(kUpdatesForCopies * held, kMostUpdatesForCopies);
}

double DataBytes(const v1::JobSpec& spec, const model::Graph& graph) {
  const auto examples = [](const v1::DataSource& source) {
    return static_cast<double>(local::ExamplesOf(source).value_or(0));
  };
  const double train = examples(spec.data().train()) / spec.distribution().data_servers();
  return kDataBase +
         kDataCopies * (train + examples(spec.data().validation())) * InputElements(graph);
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

absl::StatusOr<std::vector<MemoryNeed>> MemoryNeeds(v1::TrainingJob job) {
  job.mutable_spec()->mutable_optimiser()->clear_schedule();  // it may count epochs
  ADAMANT_ASSIGN_OR_RETURN(const worker::WorkerJob read, worker::ReadJob(job, 0, std::nullopt));
  const v1::Distribution& distribution = job.spec().distribution();
  const v1::ParameterServers& servers = distribution.parameter_servers();
  const double all = ParameterBytes(read);
  const auto retain = static_cast<double>(servers.persistence().retain());
  const auto bytes = [](double value) { return static_cast<std::uint64_t>(value); };
  return std::vector<MemoryNeed>{
      {"worker", distribution.workers(), bytes(WorkerBytes(read, retain))},
      {"parameter server", servers.count(), bytes(ServerBytes(servers, all))},
      {"data server", distribution.data_servers(), bytes(DataBytes(job.spec(), read.graph))},
      {"controller", 1, bytes(kControllerBase + kControllerCopies * all)}};
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
