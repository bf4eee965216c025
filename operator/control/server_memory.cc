#include "operator/control/server_memory.h"

#include <algorithm>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/model/model.h"
#include "services/common/tensor/shape.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::control {
namespace {

constexpr double kMiB = 1 << 20;

// What each process has before it knows of parameters and data: programs, libraries, threads.
constexpr double kServerBase = 60 * kMiB;
constexpr double kDataBase = 24 * kMiB;
constexpr double kControllerBase = 50 * kMiB;

// In sizes of the parameters that a server holds: with their snapshot and messages on their way.
constexpr double kServerAlone = 2.3;
constexpr double kServerReplicated = 2.8;
constexpr double kUpdatesForCopies = 4;  // that the other copies do not have yet, within a limit
constexpr double kMostUpdatesForCopies = 64 * kMiB;

// An example lies in its source and, with what is drawn or transformed, in the cache.
constexpr double kDataCopies = 1.6;

// In sizes of all parameters: the plan of the net, which is timed first, and the model at the end.
constexpr double kControllerCopies = 4.9;

double ServerBytes(const v1::ParameterServers& servers, double all) {
  const double held = all * servers.copies() / servers.count();
  return servers.copies() == 1 ? kServerBase + kServerAlone * held
                               : kServerBase + kServerReplicated * held +
                                     std::min(kUpdatesForCopies * held, kMostUpdatesForCopies);
}

// An element is a byte.
double DataBytes(const ExampleCounts& examples, int data_servers, const model::Graph& graph) {
  const double train = static_cast<double>(examples.train) / data_servers;
  const auto elements = static_cast<double>(ElementCount(graph.input).value_or(0));
  return kDataBase + kDataCopies * (train + static_cast<double>(examples.validation)) * elements;
}

}  // namespace

absl::StatusOr<ServerMemory> ServerMemoryOf(const v1::TrainingJob& job,
                                            const ExampleCounts& examples) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  const double all =
      static_cast<double>(ShardLayout(graph.parameters, 1).elements()) * sizeof(float);
  const v1::Distribution& distribution = job.spec().distribution();
  const auto bytes = [](double value) { return static_cast<std::uint64_t>(value); };
  return ServerMemory{.parameter_server = bytes(ServerBytes(distribution.parameter_servers(), all)),
                      .data_server = bytes(DataBytes(examples, distribution.data_servers(), graph)),
                      .controller = bytes(kControllerBase + kControllerCopies * all)};
}

}  // namespace adamant::control
