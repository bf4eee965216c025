// What replication and flushing cost: the real program, over loopback gRPC, with one worker's
// stream. Recorded in docs/bench/replication.md.
//
//   build/release/bench/replication_bench [--case NAME] [--runs N] [--seconds S] [--persistence
//   MODE]
//
//   latency      from sending 1 MB to its acknowledgement, one after the other, by median
//   throughput   pushes of 4 MB as workers send them, 4 under way
//   small        updates of 4 KB over 64 buckets, 64 in a message, 4 messages under way
//   single       the same, each in a message of its own, 64 under way
//   flush        256 MB of shards, all dirtied again and again, one copy; flushed within 5 s
//                against never
//
// Each case compares two sides, three copies with one or flushing with none, which take turns of S
// (2) seconds, N (5) times. All figures are medians of the turns (smallest–largest); the ratio is
// of two turns that follow each other, so that what else the machine does mostly cancels out. CPU
// is that of the servers, by /proc. MODE (None) is that of all cases but flush.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/rpc/tune_malloc.h"
#include "tests/bench/servers/server_processes.h"
#include "tests/bench/servers/worker_stream.h"

namespace adamant::parameter_server {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kLargeShard = ShardLayout::kShardElements;
constexpr std::size_t kSmallShard = 1024;
constexpr std::size_t kMostShards = 256;                // that are pushed to
constexpr std::size_t kValues = std::size_t{16} << 20;  // that pushes take turns to send: 64 MB

struct Settings {
  std::string only;
  int runs = 5;
  double seconds = 2;
  std::string persistence = "{mode: None}";
};

double Since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// --- The job

std::string Layer(const std::string& name, int outputs) {
  return "        - {name: " + name +
         ", kind: FullyConnected, outputs: " + std::to_string(outputs) + "}\n";
}

/// A net with more than 256 shards of 1 MB.
std::string LargeLayers() { return Layer("a", 8192) + Layer("b", 8192) + Layer("c", 10); }

/// A net with 255 tensors of 4 KB.
std::string SmallLayers() {
  std::string layers;
  for (int i = 0; i < 256; ++i) {
    layers += Layer("a" + std::to_string(i), 32);
  }
  return layers + Layer("b", 10);
}

std::string Manifest(const std::string& layers, int copies, const std::string& persistence) {
  return R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: bench}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
)" + layers +
         R"(  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution:
    workers: 1
    parameterServers:
      count: )" +
         std::to_string(copies) + R"(
      copies: )" +
         std::to_string(copies) + R"(
      buckets: 64
      persistence: )" +
         persistence + "\n";
}

// --- One side

/// How a worker pushes.
struct Traffic {
  std::size_t elements = kLargeShard;  // of the shards that it pushes to
  std::size_t per_message = 1;
  std::size_t window = 1;  // messages under way
};

struct Turn {
  double updates_per_second = 0;
  double gigabytes_per_second = 0;
  double microseconds = 0;  // from sending a message to the next answer, median
  double cpu_per_gigabyte = 0;
};

/// Servers and the worker that pushes to all shards of one size, in turn.
class Side {
 public:
  Side(int copies, const std::string& manifest, const Traffic& traffic)
      : servers_(static_cast<std::uint32_t>(copies), manifest),
        traffic_(traffic),
        stream_(servers_.address(), ServerProcesses::kJobUid) {
    for (const Shard& shard : servers_.layout().shards()) {
      if (shard.size() == traffic.elements && shards_.size() < kMostShards) {
        shards_.push_back(shard.id);
      }
    }
    shards_.resize(shards_.size() / traffic.per_message * traffic.per_message);
    sequences_.resize(shards_.size());
    for (std::size_t i = 0; i < shards_.size(); i += traffic.per_message) {
      const v1::ExchangeRequest request = NextRequest();
      stream_.PushUntilApplied(request, NextPayload());
    }
  }

  Turn Run(double seconds) {
    std::deque<steady_clock::time_point> sent;
    std::vector<double> waits;
    std::size_t messages = 0;
    const double cpu = servers_.CpuSeconds();
    const auto start = steady_clock::now();
    while (Since(start) < seconds) {
      while (sent.size() < traffic_.window) {
        sent.push_back(steady_clock::now());
        const v1::ExchangeRequest request = NextRequest();
        stream_.Send(request, NextPayload());
      }
      stream_.Receive();
      ++messages;
      waits.push_back(Since(sent.front()) * 1e6);
      sent.pop_front();
    }
    const double took = Since(start);
    for (; !sent.empty(); sent.pop_front()) {
      stream_.Receive();
    }
    const auto updates = static_cast<double>(messages * traffic_.per_message);
    const double gigabytes = updates * static_cast<double>(traffic_.elements) * sizeof(float) / 1e9;
    return {.updates_per_second = updates / took,
            .gigabytes_per_second = gigabytes / took,
            .microseconds = Median(std::move(waits)),
            .cpu_per_gigabyte = (servers_.CpuSeconds() - cpu) / gigabytes};
  }

 private:
  v1::ExchangeRequest NextRequest() {
    v1::ExchangeRequest request;
    for (std::size_t i = 0; i < traffic_.per_message; ++i, next_ = (next_ + 1) % shards_.size()) {
      v1::ShardUpdate& update = *request.mutable_push()->add_updates();
      update.set_shard(shards_[next_]);
      update.set_bucket_epoch(servers_.version());
      update.set_sequence(++sequences_[next_]);
    }
    return request;
  }

  std::vector<rpc::LentBytes> NextPayload() {
    const std::size_t size = traffic_.per_message * traffic_.elements;
    place_ = place_ + size > kValues ? 0 : place_;
    const auto piece = std::span(*values_).subspan(place_, size);
    place_ += size;
    return {{std::as_bytes(piece), values_}};
  }

  ServerProcesses servers_;
  const Traffic traffic_;
  WorkerStream stream_;
  std::vector<ShardId> shards_;
  std::vector<std::uint64_t> sequences_;
  std::size_t next_ = 0;  // shard to push to
  const std::shared_ptr<const std::vector<float>> values_ =
      std::make_shared<const std::vector<float>>(kValues, 1e-3F);
  std::size_t place_ = 0;
};

// --- Both sides

/// What a case shows of its turns.
using Figure = double Turn::*;

std::string Spread(std::vector<double> values, const char* format) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  char text[96];
  const std::string all = std::string(format) + " (" + format + "–" + format + ")";
  std::snprintf(text, sizeof(text), all.c_str(), Median(values), *low, *high);
  return text;
}

void PrintRow(const std::string& name,
              const std::vector<Turn>& first,
              const std::vector<Turn>& second,
              Figure figure,
              const char* format) {
  std::vector<double> columns[3];
  for (std::size_t i = 0; i < first.size(); ++i) {
    columns[0].push_back(first[i].*figure);
    columns[1].push_back(second[i].*figure);
    columns[2].push_back(second[i].*figure / first[i].*figure);
  }
  std::printf("| %s | %s | %s | %s |\n",
              name.c_str(),
              Spread(columns[0], format).c_str(),
              Spread(columns[1], format).c_str(),
              Spread(columns[2], "%.3f").c_str());
}

/// One side of a case.
struct Kind {
  std::string name;
  int copies = 1;
  std::string persistence;
};

void Compare(const std::string& name,
             const Settings& settings,
             const Traffic& traffic,
             const Kind& first,
             const Kind& second) {
  if (!settings.only.empty() && settings.only != name) {
    return;
  }
  const std::string layers = traffic.elements == kLargeShard ? LargeLayers() : SmallLayers();
  const auto side = [&](const Kind& kind) {
    return std::make_unique<Side>(
        kind.copies, Manifest(layers, kind.copies, kind.persistence), traffic);
  };
  std::vector<std::pair<std::unique_ptr<Side>, std::vector<Turn>>> sides;
  sides.emplace_back(side(first), std::vector<Turn>());
  sides.emplace_back(side(second), std::vector<Turn>());
  for (auto& [each, turns] : sides) {
    each->Run(settings.seconds / 4);  // to warm up
  }
  for (int run = 0; run < settings.runs; ++run) {
    for (auto& [each, turns] : sides) {
      turns.push_back(each->Run(settings.seconds));
    }
  }
  const auto& a = sides[0].second;
  const auto& b = sides[1].second;
  std::printf("\n| %s | %s | %s | ratio |\n|---|---|---|---|\n",
              name.c_str(),
              first.name.c_str(),
              second.name.c_str());
  PrintRow("µs, p50", a, b, &Turn::microseconds, "%.0f");
  PrintRow("updates/s", a, b, &Turn::updates_per_second, "%.0f");
  PrintRow("GB/s", a, b, &Turn::gigabytes_per_second, "%.3f");
  PrintRow("servers' CPU s/GB", a, b, &Turn::cpu_per_gigabyte, "%.2f");
  std::fflush(stdout);
}

void RunAll(const Settings& settings) {
  const Kind alone{.name = "1 copy", .copies = 1, .persistence = settings.persistence};
  const Kind replicated{.name = "3 copies", .copies = 3, .persistence = settings.persistence};
  Compare("latency", settings, {}, alone, replicated);
  Compare("throughput", settings, {.per_message = 4, .window = 4}, alone, replicated);
  Compare("small",
          settings,
          {.elements = kSmallShard, .per_message = 64, .window = 4},
          alone,
          replicated);
  Compare("single", settings, {.elements = kSmallShard, .window = 64}, alone, replicated);
  Settings longer = settings;
  longer.seconds = std::max(settings.seconds, 10.0);  // four flushes
  Compare("flush",
          longer,
          {.per_message = 4, .window = 4},
          {.name = "never flushed", .persistence = "{mode: None}"},
          {.name = "flushed within 5 s",
           .persistence = "{mode: Delayed, flushInterval: 5s, flushBytes: 1Gi}"});
}

int Run(int argc, char** argv) {
  Settings settings;
  std::string mode = "None";
  CLI::App app("What replication and flushing cost.");
  app.add_option(
      "--case", settings.only, "Only this one: latency, throughput, small, single, flush");
  app.add_option("--runs", settings.runs, "Turns of each side")->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds, "Length of a turn")->check(CLI::PositiveNumber);
  app.add_option("--persistence", mode, "Mode of all cases but flush");
  CLI11_PARSE(app, argc, argv);
  settings.persistence = "{mode: " + mode + "}";
  rpc::TuneMalloc();
  RunAll(settings);
  return 0;
}

}  // namespace
}  // namespace adamant::parameter_server

int main(int argc, char** argv) {
  try {
    return adamant::parameter_server::Run(argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "replication_bench: %s\n", error.what());
    return 1;
  }
}
