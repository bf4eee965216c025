#include "operator/cli/warnings/net_plan.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "operator/cli/console/table.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/common/graph/context.h"
#include "services/common/job/job.h"
#include "services/common/kernels/product_speed.h"
#include "services/common/model/model.h"
#include "services/worker/core/base/accumulator.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/learner/local_update.h"
#include "services/worker/rpc/job/worker_job.h"

namespace adamant::cli {
namespace {

// A layer that is slower than this share of the core, and takes more than that part of the step, is
// called out.
constexpr double kLowShare = 0.25;
constexpr double kLargePart = 0.1;

constexpr double kMoreThanAll = 1.1;  // of a step, which its layers cannot take

/// One training thread of a worker, without what it exchanges with others.
class Thread {
 public:
  explicit Thread(const worker::WorkerJob& job)
      : job_(job),
        weights_(job.plan.elements),
        state_(job.plan.StateSize()),
        scratch_(worker::UpdatePlan::kBlock),
        accumulator_(job.plan, job.layout.shards().size(), job.options.push_every),
        update_(job.plan,
                {.weights = weights_.span(),
                 .state = state_.span(),
                 .pending = {},
                 .scratch = scratch_.span()},
                {.alone = job.options.threads == 1}) {
    for (const Shard& shard : job.layout.shards()) {
      const std::size_t begin = job.layout.OffsetOf(shard.tensor) + shard.begin;
      InitialiseShard(1,
                      job.graph.parameters[shard.tensor],
                      shard,
                      weights_.span().subspan(begin, shard.size()));
    }
  }

  absl::StatusOr<graph::StepProfile> Profile(const graph::ProfileOptions& options) {
    ADAMANT_ASSIGN_OR_RETURN(
        const auto context,
        graph::Context::Create(job_.graph,
                               static_cast<std::int64_t>(job_.options.batch_size),
                               job_.options.backend,
                               /*training=*/true));
    Rng rng(1);
    for (float& value : context->input()) {
      value = static_cast<float>(rng.Normal());
    }
    for (std::int32_t& label : context->labels()) {
      label = static_cast<std::int32_t>(rng.Below(static_cast<std::uint64_t>(job_.graph.classes)));
    }
    BeginMostSteps();
    return context->Profile(options, weights_.span(), update_);
  }

 private:
  // A step between the first and the last of a push, as most are.
  void BeginMostSteps() {
    update_.Begin(1, accumulator_);
    if (job_.options.push_every > 2) {
      accumulator_.steps = 1;
      update_.Begin(1, accumulator_);
    }
  }

  const worker::WorkerJob& job_;
  worker::FloatBuffer weights_;
  worker::FloatBuffer state_;
  worker::FloatBuffer scratch_;
  worker::Accumulator accumulator_;
  worker::LocalUpdate update_;
};

std::string Format(const char* format, double value) {
  char text[128];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::vector<std::string> Row(const graph::NodeProfile& node, double batch, double peak) {
  const double speed = static_cast<double>(node.flop_per_example) * batch / node.seconds;
  const bool counts = node.flop_per_example > 0;
  return {node.layer,
          node.kernel,
          graph::LayoutName(node),
          Format("%.0f kB", static_cast<double>(node.output_bytes) / 1e3),
          counts ? Format("%.3f", static_cast<double>(node.flop_per_example) / 1e6) : "-",
          Format("%.1f", 1e6 * node.seconds),
          counts ? Format("%.0f", speed / 1e9) : "-",
          counts ? Format("%.0f%%", 100 * speed / peak) : "-"};
}

std::string TextOf(const worker::WorkerJob& job, const graph::StepProfile& profile, double peak) {
  const auto batch = static_cast<double>(job.options.batch_size);
  std::vector<std::vector<std::string>> rows = {
      {"LAYER", "KERNEL", "LAYOUT", "OUTPUT", "MFLOP/EXAMPLE", "US/STEP", "GFLOP/S", "OF PEAK"}};
  for (const graph::NodeProfile& node : profile.nodes) {
    rows.push_back(Row(node, batch, peak));
  }
  std::string text = Table(rows) + "\n";
  const double speed = static_cast<double>(job.graph.flop_per_example) * batch / profile.seconds;
  text += Format("step of %.0f examples on one thread: ", batch);
  text += Format("%.0f us, ", 1e6 * profile.seconds);
  text += Format("%.0f examples/s, ", batch / profile.seconds);
  text += Format("%.0f GFLOP/s, ", speed / 1e9);
  text += Format("%.0f%% of the ", 100 * speed / peak);
  text += Format("%.0f GFLOP/s of a matrix product; ", peak / 1e9);
  text += Format("%.1f MB of memory\n", static_cast<double>(profile.memory_bytes) / 1e6);
  double layers = 0;
  for (const graph::NodeProfile& node : profile.nodes) {
    layers += node.seconds;
    const double share = static_cast<double>(node.flop_per_example) * batch / node.seconds / peak;
    const double part = node.seconds / profile.seconds;
    if (node.flop_per_example > 0 && share < kLowShare && part > kLargePart) {
      text += node.layer + Format(" reaches %.0f%% of the core's speed", 100 * share) +
              Format(" and takes %.0f%% of the step\n", 100 * part);
    }
  }
  if (layers > kMoreThanAll * profile.seconds) {
    text +=
        "the layers take more than the step: something else had the processor meanwhile, and "
        "these times say little\n";
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> NetPlan(v1::TrainingJob job, const NetPlanOptions& options) {
  if (options.batch > 0) {
    job.mutable_spec()->mutable_data()->set_batch_size(options.batch);
  }
  job.mutable_spec()->mutable_optimiser()->clear_schedule();  // takes no time
  ADAMANT_ASSIGN_OR_RETURN(const worker::WorkerJob read, worker::ReadJob(job, 0, std::nullopt));
  ADAMANT_ASSIGN_OR_RETURN(const graph::StepProfile profile, Thread(read).Profile(options.profile));
  return TextOf(read, profile, kernels::ProductSpeed());
}

absl::StatusOr<std::string> QuickNetPlan(const v1::TrainingJob& job) {
  constexpr double kSlowCore = 50e9;  // FLOP/s
  constexpr int kFewExamples = 16;
  constexpr int kMostSteps = 7;
  ADAMANT_ASSIGN_OR_RETURN(const model::Graph graph, model::BuildGraph(job::NetOf(job)));
  const double example = static_cast<double>(graph.flop_per_example) / kSlowCore;
  int batch = job.spec().data().batch_size();
  if (batch * example > 1) {
    batch = std::min(batch, kFewExamples);
  }
  return NetPlan(job, {.batch = batch, .profile = {.steps = kMostSteps, .seconds = 1}});
}

}  // namespace adamant::cli
