#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/console/table.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/context.h"
#include "services/common/job/job.h"
#include "services/common/kernels/product_speed.h"
#include "services/worker/core/accumulator.h"
#include "services/worker/core/float_buffer.h"
#include "services/worker/core/local_update.h"
#include "services/worker/rpc/worker_job.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant plan job.yaml
      Says for every layer which kernel trains it on this machine, and how fast.
  ADAMANT_MAX_CPU_ISA=AVX2 adamant plan job.yaml --batch 128
      The same without AVX-512, with batches of 128.

Times are medians of steps on random data, on one thread. A layer is named below the table if it
reaches less than a quarter of the core's speed and takes more than a tenth of the step.)";

constexpr double kLowShare = 0.25;
constexpr double kLargePart = 0.1;

struct PlanFlags {
  std::string job;
  int batch = 0;  // 0: the job's
  int steps = 31;
};

/// One training thread of a worker, without what it exchanges with others.
class Thread {
 public:
  explicit Thread(const worker::WorkerJob& job)
      : job_(job),
        weights_(job.plan.elements),
        state_(job.plan.elements),
        scratch_(worker::UpdatePlan::kBlock),
        accumulator_(job.plan, job.layout.shards().size(), 1),
        update_(job.plan,
                {.weights = weights_.span(),
                 .state = state_.span(),
                 .pending = {},
                 .scratch = scratch_.span()},
                {}) {
    for (const Shard& shard : job.layout.shards()) {
      const std::size_t begin = job.layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(1,
                      job.graph.parameters[shard.tensor],
                      shard,
                      weights_.span().subspan(begin, shard.size()));
    }
  }

  absl::StatusOr<graph::StepProfile> Profile(int steps) {
    ADAMANT_ASSIGN_OR_RETURN(
        const auto context,
        graph::Context::Create(job_.graph,
                               static_cast<std::int64_t>(job_.replica.batch_size),
                               job_.replica.backend,
                               /*training=*/true));
    Rng rng(1);
    for (float& value : context->input()) {
      value = static_cast<float>(rng.Normal());
    }
    for (std::int32_t& label : context->labels()) {
      label = static_cast<std::int32_t>(rng.Below(static_cast<std::uint64_t>(job_.graph.classes)));
    }
    update_.Begin(1, accumulator_);
    return context->Profile(steps, weights_.span(), update_);
  }

 private:
  const worker::WorkerJob& job_;
  worker::FloatBuffer weights_;
  worker::FloatBuffer state_;
  worker::FloatBuffer scratch_;
  worker::Accumulator accumulator_;
  worker::LocalUpdate update_;
};

std::string Format(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string LayoutText(const graph::NodeProfile& node) {
  if (!node.is_maps) {
    return "features";
  }
  switch (node.layout) {
    case kernels::MapLayout::kChannelsFirst:
      return "channels first";
    case kernels::MapLayout::kChannelsLast:
      return "channels last";
    case kernels::MapLayout::kBatchInnermost:
      return "batch innermost";
  }
  return "";
}

std::vector<std::string> Row(const graph::NodeProfile& node, double batch, double peak) {
  const double speed = static_cast<double>(node.flop_per_example) * batch / node.seconds;
  const bool counts = node.flop_per_example > 0;
  return {node.layer,
          node.kernel,
          LayoutText(node),
          Format("%.0f kB", static_cast<double>(node.output_bytes) / 1e3),
          counts ? Format("%.3f", static_cast<double>(node.flop_per_example) / 1e6) : "-",
          Format("%.1f", 1e6 * node.seconds),
          counts ? Format("%.0f", speed / 1e9) : "-",
          counts ? Format("%.0f%%", 100 * speed / peak) : "-"};
}

void Print(const worker::WorkerJob& job, const graph::StepProfile& profile, double peak) {
  const auto batch = static_cast<double>(job.replica.batch_size);
  std::vector<std::vector<std::string>> rows = {
      {"LAYER", "KERNEL", "LAYOUT", "OUTPUT", "MFLOP/EXAMPLE", "US/STEP", "GFLOP/S", "OF PEAK"}};
  for (const graph::NodeProfile& node : profile.nodes) {
    rows.push_back(Row(node, batch, peak));
  }
  std::printf("%s\n", Table(rows).c_str());
  const double speed = static_cast<double>(job.graph.flop_per_example) * batch / profile.seconds;
  std::printf(
      "step of %.0f examples on one thread: %.0f us, %.0f examples/s, %.0f GFLOP/s, %.0f%% of the "
      "%.0f GFLOP/s of a matrix product; %.1f MB of memory\n",
      batch,
      1e6 * profile.seconds,
      batch / profile.seconds,
      speed / 1e9,
      100 * speed / peak,
      peak / 1e9,
      static_cast<double>(profile.memory_bytes) / 1e6);
  for (const graph::NodeProfile& node : profile.nodes) {
    const double share = static_cast<double>(node.flop_per_example) * batch / node.seconds / peak;
    const double part = node.seconds / profile.seconds;
    if (node.flop_per_example > 0 && share < kLowShare && part > kLargePart) {
      std::printf("%s reaches %.0f%% of the core's speed and takes %.0f%% of the step\n",
                  node.layer.c_str(),
                  100 * share,
                  100 * part);
    }
  }
}

int Plan(const PlanFlags& flags) {
  const job::ParseResult parsed = job::LoadJob(flags.job);
  for (const job::Diagnostic& problem : parsed.problems) {
    std::fprintf(stderr, "%s\n", job::Format(problem).c_str());
  }
  if (parsed.job == nullptr) {
    return kBadInput;
  }
  if (flags.batch > 0) {
    parsed.job->mutable_spec()->mutable_data()->set_batch_size(flags.batch);
  }
  parsed.job->mutable_spec()->mutable_optimiser()->clear_schedule();  // takes no time
  const absl::StatusOr<worker::WorkerJob> job = worker::ReadJob(*parsed.job, std::nullopt);
  if (!job.ok()) {
    PrintError(std::string(job.status().message()));
    return kBadInput;
  }
  const absl::StatusOr<graph::StepProfile> profile = Thread(*job).Profile(flags.steps);
  if (!profile.ok()) {
    PrintError(std::string(profile.status().message()));
    return kCannotRun;
  }
  Print(*job, *profile, kernels::ProductSpeed());
  return kOk;
}

}  // namespace

void AddPlan(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("plan", "Say how this machine trains a job's net");
  const auto flags = std::make_shared<PlanFlags>();
  command.add_option("JOB", flags->job, "Manifest of the job (YAML)")->required();
  command.add_option("--batch", flags->batch, "Examples of a batch [the job's]")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("--steps", flags->steps, "Steps that are timed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Plan(*flags); });
}

}  // namespace adamant::cli
