#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/cli/warnings/machine_warning.h"
#include "operator/cli/warnings/memory_need.h"
#include "operator/cli/warnings/net_plan.h"
#include "operator/local/processes/control_group.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/thread_affinity.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant plan job.yaml
      Says for every layer which kernel trains it on this machine, and how fast.
  ADAMANT_MAX_CPU_ISA=AVX2 adamant plan job.yaml --batch 128
      The same without AVX-512, with batches of 128.

The table has a line for each kernel that runs: LAYER, or the layers, that it is for (.layout:
what it reads is brought into its order); KERNEL; the LAYOUT and the bytes of its OUTPUT for a
batch; MFLOP/EXAMPLE, forward and backward; US/STEP, what it takes of a step; OF PEAK, its share of
what a matrix product reaches on this core. The rest of a step is the loss and the update.

Times are medians of 31 steps on random data, or of as many as are begun in 10 seconds, on one
thread. A layer is named below the table if it reaches less than a quarter of the core's speed and
takes more than a tenth of the step. Where more than one thread trains, lines below say what becomes
of rate and momentum. The last line is what memory the job is expected to take on one machine.)";

struct PlanFlags {
  std::string job;
  int batch = 0;  // 0: the job's
  int steps = 0;  // 0: as many as kExamples says
};

graph::ProfileOptions ProfileOptionsOf(const PlanFlags& flags) {
  graph::ProfileOptions options;
  if (flags.steps > 0) {
    options.steps = flags.steps;
  } else {
    options.seconds = 10;
  }
  if (isatty(STDERR_FILENO) != 0) {
    options.on_step = [steps = options.steps](int done) {
      std::fprintf(stderr, "\r\033[Kstep %d of %d", done, steps);
    };
  }
  return options;
}

int Plan(const PlanFlags& flags) {
  const job::ParseResult parsed = job::LoadJob(flags.job);
  PrintProblems(parsed.problems);
  if (parsed.job == nullptr) {
    return kBadInput;
  }
  const absl::StatusOr<std::string> plan =
      NetPlan(*parsed.job, {.batch = flags.batch, .profile = ProfileOptionsOf(flags)});
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "\r\033[K");  // what tells of steps
  }
  if (!plan.ok()) {
    PrintError(std::string(plan.status().message()));
    return absl::IsInvalidArgument(plan.status()) ? kBadInput : kCannotRun;
  }
  if (flags.batch > 0) {
    parsed.job->mutable_spec()->mutable_data()->set_batch_size(flags.batch);
  }
  ExpectationText expectation = ExpectationOf(*parsed.job);
  if (const auto needs = MemoryNeeds(*parsed.job); needs.ok()) {
    const std::optional<std::uint64_t> free = local::ControlGroup().FreeMemory();
    expectation.lines += MemoryLine(*needs, free);
    if (std::string warning = MemoryWarning(*needs, free); !warning.empty()) {
      expectation.warnings.push_back(std::move(warning));
    }
  }
  if (std::string warning = MachineWarning(*parsed.job, UsableCpus()); !warning.empty()) {
    expectation.warnings.push_back(std::move(warning));
  }
  std::fputs((*plan + expectation.lines).c_str(), stdout);
  PrintWarnings(expectation.warnings);
  return kOk;
}

}  // namespace

void AddPlan(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("plan", "Say how this machine trains a job's net");
  const auto flags = std::make_shared<PlanFlags>();
  command.add_option("JOB", flags->job, "Manifest of the job (YAML)")->required();
  command.add_option("--batch", flags->batch, "Examples of a batch [the job's]")
      ->check(WholeNumber(1, 1 << 20));
  command.add_option("--steps", flags->steps, "Steps that are timed [31, or those of 10 seconds]")
      ->check(WholeNumber(1, 1000));
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Plan(*flags); });
}

}  // namespace adamant::cli
