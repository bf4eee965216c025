#include "tests/bench/stale/stale_command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/dataset/idx.h"
#include "tests/bench/data/nets.h"

namespace adamant::bench {
namespace {

absl::StatusOr<dataset::Dataset> Read(const StaleCommand& command,
                                      const std::string& prefix,
                                      const model::Graph& graph) {
  ADAMANT_ASSIGN_OR_RETURN(
      dataset::Dataset data,
      dataset::ReadIdx(dataset::MnistPaths(command.data, prefix),
                       {.classes = static_cast<std::uint32_t>(graph.classes)}));
  if (Shape{data.channels, data.height, data.width} != graph.input) {
    return absl::InvalidArgumentError("the images of " + prefix + " do not fit the net's input");
  }
  return data;
}

template <class T>
CLI::CheckedTransformer OneOf(const std::map<std::string, T>& values) {
  return CLI::CheckedTransformer(values);
}

void AddRule(CLI::App& command, StaleOptions& options) {
  command.add_option("--kind", options.kind, "Momentum, Sgd or Adagrad")
      ->transform(OneOf<OptimiserKind>({{"Momentum", OptimiserKind::kMomentum},
                                        {"Sgd", OptimiserKind::kSgd},
                                        {"Adagrad", OptimiserKind::kAdagrad}}));
  command.add_option("--location", options.location, "Worker or Server")
      ->transform(OneOf<OptimiserLocation>(
          {{"Worker", OptimiserLocation::kWorker}, {"Server", OptimiserLocation::kServer}}));
  command.add_option("--rate", options.rate)->capture_default_str();
  command.add_option("--schedule", options.schedule, "Linear (the default), to 0, or Constant")
      ->transform(OneOf<Schedule::Kind>(
          {{"Linear", Schedule::Kind::kLinear}, {"Constant", Schedule::Kind::kConstant}}));
  command.add_option("--warm-up", options.warm_up, "Epochs over which the rate rises from 0")
      ->capture_default_str();
  command.add_option("--momentum", options.momentum)
      ->check(CLI::Range(0.0, 0.9999))
      ->capture_default_str();
  command.add_option("--weight-decay", options.weight_decay)->capture_default_str();
}

void AddAsynchrony(CLI::App& command, StaleOptions& options) {
  command.add_option("--fetch-every", options.fetch_every, "Batches; chosen where absent")
      ->check(CLI::Range(1, 1024));
  command.add_option("--push-every", options.push_every, "Batches; chosen where absent")
      ->check(CLI::Range(1, 1024));
  command.add_option("--asynchrony", options.asynchrony, "auto or off")
      ->transform(OneOf<bool>({{"auto", true}, {"off", false}}));
  command.add_option(
      "--warm-start", options.warm_start, "Batches of worker 0 alone; absent: as in a job");
}

void AddMachines(CLI::App& command, StaleCommand& stale) {
  StaleOptions& options = stale.options;
  command.add_option("--jitter", options.jitter, "Of a step's time, as a share of it")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  command.add_option("--latency", options.latency, "Steps that a message takes each way")
      ->capture_default_str();
  command
      .add_option("--latency-jitter", options.latency_jitter, "Of a message's, as a share of it")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  command.add_option("--apply", options.apply, "Steps that a server takes to apply a push")
      ->capture_default_str();
  command
      .add_option("--bandwidth",
                  options.bandwidth,
                  "Bytes a step that each machine sends, and takes in; 0: endless")
      ->capture_default_str();
  command.add_option("--servers", options.servers, "Parameter servers")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--straggler",
                  stale.stragglers,
                  "SLOT:FACTOR, how much longer the steps of a worker take; repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--pause",
                  stale.pauses,
                  "SLOT:EVERY:FOR, a worker stands still for the last FOR of every EVERY steps; "
                  "repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--scale",
                  stale.scalings,
                  "EPOCH:WORKERS, how many there are from then on; repeatable, in order")
      ->allow_extra_args(false);
}

std::optional<double> ParseNumber(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

/// The numbers of "1:2.5".
absl::StatusOr<std::vector<double>> Numbers(const std::string& text, std::size_t count) {
  std::istringstream stream(text);
  std::vector<double> numbers;
  for (std::string piece; std::getline(stream, piece, ':');) {
    const auto number = ParseNumber(piece);
    if (!number.has_value()) {
      piece += "' in '" + text + "' is not a number";
      return absl::InvalidArgumentError("'" + piece);
    }
    numbers.push_back(*number);
  }
  if (numbers.size() != count) {
    return absl::InvalidArgumentError("'" + text + "' should be " + std::to_string(count) +
                                      " numbers with colons between them");
  }
  return numbers;
}

/// A slot or a number of workers. What is none becomes one that is refused later.
std::uint32_t CountOf(double number) {
  const bool fits = number >= 0 && number <= 1e9 && number == std::floor(number);
  return fits ? static_cast<std::uint32_t>(number) : std::numeric_limits<std::uint32_t>::max();
}

absl::StatusOr<StaleOptions> OptionsOf(const StaleCommand& command) {
  StaleOptions options = command.options;
  for (const std::string& text : command.stragglers) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers(text, 2));
    options.stragglers.push_back({.slot = CountOf(numbers[0]), .factor = numbers[1]});
  }
  for (const std::string& text : command.pauses) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers(text, 3));
    options.pauses.push_back(
        {.slot = CountOf(numbers[0]), .pause = {.every = numbers[1], .lasts = numbers[2]}});
  }
  for (const std::string& text : command.scalings) {
    ADAMANT_ASSIGN_OR_RETURN(const std::vector<double> numbers, Numbers(text, 2));
    options.scalings.push_back({.epoch = numbers[0], .workers = CountOf(numbers[1])});
  }
  return options;
}

}  // namespace

void AddStale(CLI::App& command, StaleCommand& stale) {
  StaleOptions& options = stale.options;
  command.add_option("net", stale.net, "A reference net's name, or a job's file")->required();
  command.add_option("--data", stale.data, "Folder with MNIST's files")->required();
  command.add_option("--workers", options.workers)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Of each worker")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--batch", options.batch, "Examples in a batch")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  AddRule(command, options);
  AddAsynchrony(command, options);
  AddMachines(command, stale);
  command.add_option("--epochs", options.epochs)
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command.add_option("--evaluations", options.evaluations, "Per epoch")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--target", options.target, "Top-1 whose first time is told at the end")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of weights, order and times")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

absl::Status Stale(const StaleCommand& command) {
  ADAMANT_ASSIGN_OR_RETURN(const model::Net net, LoadNet(command.net));
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(net));
  ADAMANT_ASSIGN_OR_RETURN(dataset::Dataset train, Read(command, "train", graph));
  ADAMANT_ASSIGN_OR_RETURN(dataset::Dataset test, Read(command, "t10k", graph));
  ADAMANT_ASSIGN_OR_RETURN(const StaleOptions options, OptionsOf(command));
  const auto examples = static_cast<double>(command.options.epochs * train.size());
  StaleJob job(options, std::move(graph), std::move(train), std::move(test));
  const auto start = std::chrono::steady_clock::now();
  ADAMANT_RETURN_IF_ERROR(job.Run(std::cout));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cerr << "train_bench: " << examples / took.count() << " examples per second\n";
  return absl::OkStatus();
}

}  // namespace adamant::bench
