#include "services/worker/rpc/job/worker_memory.h"

#include <algorithm>
#include <optional>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/tensor/shape.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/learner/thread_channel.h"
#include "services/worker/rpc/job/worker_job.h"

namespace adamant::worker {
namespace {

// What the process has before it knows of parameters and data: programs, libraries, threads.
constexpr double kProcessBytes = 56 << 20;

// Pushes that are kept as they are not on the servers' disks yet; their bytes have a limit.
constexpr double kRetainedPushes = 8;

double InputElements(const model::Graph& graph) {
  return static_cast<double>(ElementCount(graph.input).value_or(0));
}

// What a step keeps for its way back, of one thread, with the examples as numbers.
double ActivationBytes(const WorkerJob& job) {
  double elements = InputElements(job.graph);
  for (const model::Graph::Node& node : job.graph.nodes) {
    elements += static_cast<double>(ElementCount(node.output).value_or(0));
  }
  return elements * sizeof(float) * static_cast<double>(job.options.batch_size);
}

// Batches as they came, of one thread, a byte an element: those ahead of need, the one that is
// trained on and the one that comes in.
double BatchBytes(const WorkerJob& job) {
  return static_cast<double>((job.options.prefetch + 2) * job.options.batch_size) *
         InputElements(job.graph);
}

double BytesOf(const WorkerJob& job, double retain) {
  const double all = static_cast<double>(job.plan.elements) * sizeof(float);
  const double accumulator = static_cast<double>(Accumulator::BytesOf(job.plan));
  const double state = static_cast<double>(job.plan.StateSize()) * sizeof(float);
  const double shared = (job.options.correct ? 4 : 3) * all;  // weights, fetched, evaluated; ahead
  const double thread = ThreadChannel::kAccumulators * accumulator + state + all +
                        (job.options.share_every > 1 ? all : 0) + ActivationBytes(job) +
                        BatchBytes(job);
  const double kept = std::min(kRetainedPushes * accumulator, retain);
  return kProcessBytes + shared + static_cast<double>(job.options.threads) * thread + kept;
}

}  // namespace

absl::StatusOr<std::uint64_t> WorkerMemory(v1::TrainingJob job) {
  job.mutable_spec()->mutable_optimiser()->clear_schedule();  // it may count epochs
  ADAMANT_ASSIGN_OR_RETURN(const WorkerJob read, ReadJob(job, 0, std::nullopt));
  const v1::Persistence& persistence = job.spec().distribution().parameter_servers().persistence();
  return static_cast<std::uint64_t>(BytesOf(read, static_cast<double>(persistence.retain())));
}

}  // namespace adamant::worker
