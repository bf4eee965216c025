// Training as a worker's threads do it, without its services: from memory, on weights that all
// threads share, with momentum on the worker.
//
//   train_bench speed NET --batch 32 --threads 2     examples per second, repetition by repetition
//   train_bench learn NET --data DIR --epochs 2      accuracy over training time, on MNIST
//   train_bench stale NET --data DIR --workers 8     the same beside others, on a virtual clock
//   train_bench describe NET                         the net, layer by layer
//
// NET is a reference net ("adam-mnist") or a job's file (tests/bench/nets/cifar10.yaml). Prints
// lines of JSON. tools/compare_pytorch runs it side by side with PyTorch.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/cache_line_ping.h"
#include "services/common/kernels/product_speed.h"
#include "tests/bench/data/examples.h"
#include "tests/bench/data/nets.h"
#include "tests/bench/machine.h"
#include "tests/bench/stale/stale_command.h"
#include "tests/bench/trainer.h"

namespace adamant::bench {
namespace {

/// Below this share of its processors' time a repetition was disturbed and does not count.
constexpr double kUndisturbed = 0.97;

constexpr double kSpeedRate = 0.001;  // noise is never learned, and must not blow up either
constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

struct Options {
  std::string net;
  std::string data;
  std::size_t batch = 32;
  std::size_t threads = 1;
  // speed
  double seconds = 1;
  int repetitions = 7;
  bool on_request = false;
  // learn
  double rate = 0.02;
  double warm_up = 0.3;
  double weight_decay = 0.0005;
  std::uint64_t epochs = 2;
  std::uint64_t evaluations = 4;
  std::uint64_t seed = 1;
};

absl::StatusOr<model::Graph> GraphOf(const std::string& name) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Net net, LoadNet(name));
  return model::BuildGraph(net);
}

/// A line on standard output, at once.
void Print(const nlohmann::json& line) { std::cout << line << std::endl; }

nlohmann::json PingOrNull() {
  const std::optional<double> ping = CacheLinePing();
  return ping ? nlohmann::json(*ping) : nlohmann::json();
}

nlohmann::json Repeat(Trainer& trainer, const Examples& examples, const Options& options) {
  const std::vector<std::uint32_t> order = Permutation(examples.size(), options.seed);
  const bool several = options.threads > 1;
  nlohmann::json line;
  if (several) {
    line["ping_ns_before"] = PingOrNull();
  }
  const double product = kernels::ProductSpeed();
  const Work work =
      trainer.Train(examples, order, std::numeric_limits<std::uint64_t>::max(), options.seconds);
  if (several) {
    line["ping_ns_after"] = PingOrNull();
  }
  const double rate = static_cast<double>(work.examples) / work.seconds;
  const double flop = rate * static_cast<double>(trainer.graph().flop_per_example);
  line["examples_per_second"] = rate;
  line["processors"] = work.processor_seconds / work.seconds;
  line["gflops"] = 1e-9 * flop;
  line["product_gflops"] = 1e-9 * product;
  const auto threads = static_cast<double>(trainer.mode().threads);
  line["threads"] = threads;
  line["mode"] = trainer.mode().Name();
  line["share_every"] = trainer.mode().share_every;
  line["share_of_product"] = flop / (product * threads);
  return line;
}

/// Median, smallest and largest.
nlohmann::json Summary(std::vector<double> values) {
  if (values.empty()) {
    return nullptr;
  }
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {{"median", median}, {"min", values.front()}, {"max", values.back()}};
}

absl::Status Speed(const Options& options) {
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, GraphOf(options.net));
  Examples examples;
  if (options.data.empty()) {
    examples = RandomExamples(graph);
  } else {
    ADAMANT_ASSIGN_OR_RETURN(examples, ReadMnist(options.data, "train", graph));
  }
  if (examples.size() < options.batch) {
    return absl::InvalidArgumentError("the batch is larger than the data");
  }
  ADAMANT_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                           Trainer::Create(std::move(graph),
                                           {.threads = options.threads,
                                            .ping = CacheLinePing(),
                                            .batch_size = options.batch,
                                            .rate = kSpeedRate,
                                            .seed = options.seed}));
  if (options.on_request) {
    for (std::string request; std::getline(std::cin, request);) {
      Print(Repeat(*trainer, examples, options));
    }
    return absl::OkStatus();
  }
  std::vector<double> kept;
  std::vector<double> disturbed;
  for (int i = 0; i < options.repetitions; ++i) {
    const nlohmann::json line = Repeat(*trainer, examples, options);
    Print(line);
    const double enough = kUndisturbed * static_cast<double>(trainer->mode().threads);
    (line["processors"] < enough ? disturbed : kept)
        .push_back(line["examples_per_second"].get<double>());
  }
  Print({{"examples_per_second", Summary(kept)}, {"disturbed", Summary(disturbed)}});
  return absl::OkStatus();
}

absl::Status Learn(const Options& options) {
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, GraphOf(options.net));
  ADAMANT_ASSIGN_OR_RETURN(const Examples train, ReadMnist(options.data, "train", graph));
  ADAMANT_ASSIGN_OR_RETURN(const Examples test, ReadMnist(options.data, "t10k", graph));
  ADAMANT_ASSIGN_OR_RETURN(
      const std::unique_ptr<Trainer> trainer,
      Trainer::Create(std::move(graph),
                      {.threads = options.threads,
                       .ping = CacheLinePing(),
                       .batch_size = options.batch,
                       .rate = options.rate,
                       .decay_over = options.epochs * train.size(),
                       .warm_up = options.warm_up * static_cast<double>(train.size()),
                       .weight_decay = options.weight_decay,
                       .seed = options.seed}));
  const std::uint64_t batches = train.size() / options.batch;
  double seconds = 0;
  double processor_seconds = 0;
  for (DataEpoch epoch = 0; epoch < options.epochs; ++epoch) {
    const std::vector<std::uint32_t> order = Permutation(train.size(), options.seed + epoch);
    for (std::uint64_t part = 0; part < options.evaluations; ++part) {
      const std::uint64_t begin = batches * part / options.evaluations;
      const std::uint64_t end = batches * (part + 1) / options.evaluations;
      const Work work = trainer->Train(
          train, std::span(order).subspan(begin * options.batch), end - begin, kNoTimeLimit);
      seconds += work.seconds;
      processor_seconds += work.processor_seconds;
      Print({{"epochs",
              static_cast<double>(epoch) + static_cast<double>(end) / static_cast<double>(batches)},
             {"seconds", seconds},
             {"processors", processor_seconds / seconds},
             {"top1", trainer->Top1(test)}});
    }
  }
  return absl::OkStatus();
}

absl::Status DescribeNet(const Options& options) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, GraphOf(options.net));
  Print(Describe(graph));
  return absl::OkStatus();
}

void AddTraining(CLI::App& command, Options& options) {
  command.add_option("net", options.net, "A reference net's name, or a job's file")->required();
  command.add_option("--batch", options.batch, "Examples in a batch")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      .add_option(
          "--threads", options.threads, "Threads that train, at most: a worker's rule decides")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of weights and order")->capture_default_str();
}

int Main(int argc, char** argv) {
  CLI::App app("Trains as a worker's threads do, from memory.", "train_bench");
  app.require_subcommand(1);
  Options options;
  CLI::App* const speed = app.add_subcommand("speed", "Examples per second");
  AddTraining(*speed, options);
  speed->add_option("--data", options.data, "Folder with MNIST's files; noise without it");
  speed->add_option("--seconds", options.seconds, "Of a repetition")->capture_default_str();
  speed->add_option("--repetitions", options.repetitions)->capture_default_str();
  speed->add_flag("--on-request", options.on_request, "A repetition per line of standard input");
  CLI::App* const learn = app.add_subcommand("learn", "Accuracy on MNIST over training time");
  AddTraining(*learn, options);
  learn->add_option("--data", options.data, "Folder with MNIST's files")->required();
  learn->add_option("--epochs", options.epochs)->capture_default_str();
  learn->add_option("--rate", options.rate, "Learning rate at first; falls linearly to 0")
      ->capture_default_str();
  learn->add_option("--warm-up", options.warm_up, "Epochs over which the rate rises from 0")
      ->capture_default_str();
  learn->add_option("--weight-decay", options.weight_decay)->capture_default_str();
  learn->add_option("--evaluations", options.evaluations, "Per epoch, outside the clock")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  StaleCommand stale_command;
  CLI::App* const stale = app.add_subcommand("stale", "Accuracy of virtual workers on MNIST");
  AddStale(*stale, stale_command);
  CLI::App* const describe = app.add_subcommand("describe", "The net as JSON");
  describe->add_option("net", options.net, "A reference net's name, or a job's file")->required();
  CLI11_PARSE(app, argc, argv);

  const absl::Status status = speed->parsed()   ? Speed(options)
                              : learn->parsed() ? Learn(options)
                              : stale->parsed() ? Stale(stale_command)
                                                : DescribeNet(options);
  if (!status.ok()) {
    std::cerr << "train_bench: " << status.message() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace adamant::bench

int main(int argc, char** argv) {
  try {
    return adamant::bench::Main(argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "train_bench: %s\n", error.what());
    return 1;
  }
}
