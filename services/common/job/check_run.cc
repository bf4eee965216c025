#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/counted.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/scalars.h"
#include "services/common/job/yaml/schema.h"
#include "services/common/tensor/shape.h"

namespace adamant::job {
namespace {

constexpr std::int64_t kMaxThreads = 16384;
constexpr std::int64_t kMaxWorkerBytes = std::int64_t{4} << 40;

class RunChecker {
 public:
  RunChecker(const v1::JobSpec& spec,
             const model::Graph* graph,
             std::optional<std::int64_t> examples,
             const Locations& given,
             Problems& problems)
      : spec_(spec), graph_(graph), examples_(examples), given_(given), problems_(problems) {}

  void Check() {
    CheckOptimiser();
    CheckProtocols();
    CheckParallelism();
    CheckMemory();
    CheckProgress();
    CheckDeadlines();
  }

 private:
  void CheckOptimiser() {
    const v1::Optimiser& optimiser = spec_.optimiser();
    if (optimiser.kind() == v1::Optimiser::KIND_ADAGRAD && !OnServer()) {
      Report("spec.optimiser.location",
             "workers do not run Adagrad, whose sums stay on the parameter servers (allowed: "
             "Server)");
    }
    std::map<std::string, int> seen;
    for (int i = 0; i < optimiser.layers_size(); ++i) {
      CheckLayerName("spec.optimiser.layers", i, optimiser.layers(i).layer(), seen);
    }
    CheckSomeLayerTrains();
  }

  void CheckSomeLayerTrains() {
    if (graph_ == nullptr || graph_->parameters.empty()) {
      return;
    }
    const auto is_frozen = [this](const Parameter& parameter) {
      return std::ranges::any_of(spec_.optimiser().layers(), [&](const v1::LayerOptimiser& own) {
        return own.layer() == parameter.layer && own.has_rate() && own.rate() == 0;
      });
    };
    if (std::ranges::all_of(graph_->parameters, is_frozen)) {
      Report("spec.optimiser.layers",
             "rate 0 freezes every layer that has parameters, so there is nothing to train; leave "
             "one to train");
    }
  }

  void CheckProtocols() {
    const v1::UpdateProtocols& protocols = spec_.distribution().update_protocol();
    if (protocols.default_() == v1::UpdateProtocols::PROTOCOL_ACTIVATIONS) {
      CheckActivationsOnServer("spec.distribution.updateProtocol.default");
    }
    const std::string list = "spec.distribution.updateProtocol.layers";
    std::map<std::string, int> seen;
    for (int i = 0; i < protocols.layers_size(); ++i) {
      const v1::LayerProtocol& layer = protocols.layers(i);
      CheckLayerName(list, i, layer.layer(), seen);
      if (layer.protocol() != v1::UpdateProtocols::PROTOCOL_ACTIVATIONS) {
        continue;
      }
      const std::string path = FieldPath(ElementPath(list, i), "protocol");
      CheckActivationsOnServer(path);
      const model::Layer* node = FindLayer(layer.layer());
      if (node != nullptr && node->kind == model::LayerKind::kConv2d) {
        Report(path,
               "Activations is for FullyConnected layers; " + Quote(layer.layer()) +
                   " is Conv2d (allowed: Auto, Gradients)");
      }
    }
  }

  void CheckActivationsOnServer(const std::string& path) {
    if (!OnServer()) {
      Report(path,
             "Activations needs spec.optimiser.location: Server, because the server makes the "
             "gradient (allowed: Auto, Gradients)");
    }
  }

  /// Checks that a layer named in `list` exists, has parameters and is named once.
  void CheckLayerName(const std::string& list,
                      int index,
                      const std::string& name,
                      std::map<std::string, int>& seen) {
    if (name.empty()) {
      return;
    }
    const std::string path = FieldPath(ElementPath(list, static_cast<std::size_t>(index)), "layer");
    const auto [first, fresh] = seen.emplace(name, index);
    if (!fresh) {
      Report(path, Quote(name) + " is listed twice; first as " + ElementPath(list, first->second));
    } else if (graph_ != nullptr) {
      std::vector<std::string> names;
      for (const model::Graph::Node& node : graph_->nodes) {
        if (node.weight >= 0) {
          names.push_back(node.layer.name);
        }
      }
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        Report(path,
               Quote(name) +
                   (FindLayer(name) == nullptr ? " is no layer of the net" : " has no parameters") +
                   " (allowed: " + Join(names) + ")",
               DidYouMean(name, names));
      }
    }
  }

  void CheckParallelism() {
    const v1::Distribution& distribution = spec_.distribution();
    const std::int64_t threads =
        std::int64_t{distribution.workers()} * distribution.threads_per_worker();
    const std::string product = Counted(distribution.workers(), "worker") + " x " +
                                Counted(distribution.threads_per_worker(), "thread");
    if (threads > kMaxThreads) {
      Report("spec.distribution.threadsPerWorker",
             product + " are " + std::to_string(threads) + " threads (allowed: at most " +
                 std::to_string(kMaxThreads) + " over all workers)");
      return;
    }
    const std::int64_t batch = spec_.data().batch_size();
    const std::int64_t in_flight = threads * batch;
    if (examples_ && in_flight > *examples_) {
      const std::string problem = product + " x " + std::to_string(batch) + " per batch are " +
                                  std::to_string(in_flight) +
                                  " examples at a time, but there are only " +
                                  std::to_string(*examples_) + " to train on: ";
      if (batch > *examples_) {
        Report("spec.data.batchSize", problem + "smaller batches or more examples help");
      } else {
        const bool many_workers = distribution.workers() > 1;
        Report(many_workers ? "spec.distribution.workers" : "spec.distribution.threadsPerWorker",
               problem + (many_workers ? "fewer workers" : "fewer threads") +
                   ", smaller batches (spec.data.batchSize) or more examples help");
      }
    }
  }

  /// What a worker holds: 3 copies of the parameters, 6 more per thread
  /// (docs/design/0007-updates.md), and for each thread a batch's activations and errors.
  void CheckMemory() {
    if (graph_ == nullptr) {
      return;
    }
    const double threads = spec_.distribution().threads_per_worker();
    double parameters = 0;
    for (const Parameter& parameter : graph_->parameters) {
      parameters += static_cast<double>(ElementCount(parameter.shape).value_or(0));
    }
    double activations = static_cast<double>(ElementCount(graph_->input).value_or(0));
    for (const model::Graph::Node& node : graph_->nodes) {
      activations += static_cast<double>(ElementCount(node.output).value_or(0));
    }
    const double bytes = sizeof(float) * (parameters * (3 + 6 * threads) +
                                          activations * 2 * threads * spec_.data().batch_size());
    if (bytes > static_cast<double>(kMaxWorkerBytes)) {
      Report("spec.model",
             "a worker would need " + FormatReal(std::round(bytes / (std::int64_t{1} << 40))) +
                 "Ti of memory (allowed: " + FormatBytes(kMaxWorkerBytes) +
                 "); make the net, batchSize or threadsPerWorker smaller");
    }
  }

  void CheckProgress() {
    const double epochs = spec_.run_policy().epochs();
    if (!spec_.run_policy().has_epochs()) {
      return;
    }
    const std::string whole_job = " of training, but the job ends after " + FormatReal(epochs) +
                                  (epochs == 1 ? " epoch" : " epochs");
    const std::optional<double> warm_up = Epochs(spec_.optimiser().schedule().warm_up());
    if (warm_up && *warm_up >= epochs) {
      Report("spec.optimiser.schedule.warmUp",
             "the warm-up takes " + FormatReal(*warm_up) + (*warm_up == 1 ? " epoch" : " epochs") +
                 whole_job + " (allowed: less than the whole job)");
    }
    const std::int64_t alone = spec_.distribution().warm_start().examples();
    if (examples_ && static_cast<double>(alone) >= epochs * static_cast<double>(*examples_)) {
      Report("spec.distribution.warmStart.examples",
             "the warm start takes " + Counted(alone, "example") + whole_job + " of " +
                 Counted(*examples_, "example"));
    }
  }

  /// An amount of progress in epochs; nullopt if it is absent or the epoch's length is not known.
  [[nodiscard]] std::optional<double> Epochs(const v1::Progress& progress) const {
    if (progress.has_epochs()) {
      return progress.epochs();
    }
    if (progress.has_examples() && examples_) {
      return static_cast<double>(progress.examples()) / static_cast<double>(*examples_);
    }
    return std::nullopt;
  }

  void CheckDeadlines() {
    const v1::RunPolicy& policy = spec_.run_policy();
    if (policy.has_active_deadline() && policy.has_epoch_deadline() &&
        policy.epoch_deadline().seconds() > policy.active_deadline().seconds()) {
      Report("spec.runPolicy.epochDeadline",
             "longer than activeDeadline, which ends the whole job");
    }
  }

  [[nodiscard]] bool OnServer() const {
    return spec_.optimiser().location() != v1::Optimiser::LOCATION_WORKER;
  }

  [[nodiscard]] const model::Layer* FindLayer(const std::string& name) const {
    if (graph_ == nullptr) {
      return nullptr;
    }
    const auto found = std::find_if(
        graph_->nodes.begin(), graph_->nodes.end(), [&](const model::Graph::Node& node) {
          return node.layer.name == name;
        });
    return found == graph_->nodes.end() ? nullptr : &found->layer;
  }

  void Report(const std::string& path, std::string message, std::string hint = "") {
    problems_.Add(Locate(given_, path), path, std::move(message), std::move(hint));
  }

  const v1::JobSpec& spec_;
  const model::Graph* const graph_;
  const std::optional<std::int64_t> examples_;
  const Locations& given_;
  Problems& problems_;
};

}  // namespace

void CompleteOptimiser(v1::JobSpec& spec, const Locations& given) {
  v1::Optimiser& optimiser = *spec.mutable_optimiser();
  if (optimiser.has_kind() && !given.contains("spec.optimiser.location")) {
    optimiser.set_location(optimiser.kind() == v1::Optimiser::KIND_ADAGRAD
                               ? v1::Optimiser::LOCATION_SERVER
                               : v1::Optimiser::LOCATION_WORKER);
  }
}

void CheckRun(const v1::JobSpec& spec,
              const model::Graph* graph,
              std::optional<std::int64_t> examples,
              const Locations& given,
              Problems& problems) {
  RunChecker(spec, graph, examples, given, problems).Check();
}

}  // namespace adamant::job
