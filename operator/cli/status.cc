#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/cli/commands.h"
#include "operator/cli/display.h"
#include "operator/cli/exit_codes.h"
#include "operator/cli/print_error.h"
#include "operator/local/record.h"
#include "operator/local/run_status.h"

namespace adamant::cli {
namespace {

using controller::JobReport;

constexpr char kExamples[] = R"(Examples:
  adamant status runs/first
  adamant status runs/first --output json

Works while the job runs and after it has ended.)";

struct StatusFlags {
  std::string run_dir;
  Output output = Output::kText;
};

void PrintMembers(const JobReport& report) {
  for (const JobReport::MemberReport& member : report.members) {
    std::printf("  %-20s %-10s start %llu",
                controller::ToString(member.id).c_str(),
                member.state.c_str(),
                static_cast<unsigned long long>(member.incarnation));
    if (!member.metrics_address.empty()) {
      std::printf("  http://%s/metrics", member.metrics_address.c_str());
    }
    if (member.buckets > 0) {
      std::printf("  %u buckets", member.buckets);
    }
    std::printf("\n");
  }
}

void PrintText(const local::RunStatus& status, const std::string& run_dir) {
  const JobReport& report = status.report;
  // A run whose controller is gone but that did not end was killed.
  const bool cut_off = !status.live && !controller::IsFinal(report.phase);
  std::printf("%s: %s\n",
              report.name.c_str(),
              cut_off ? "Interrupted" : std::string(controller::PhaseName(report.phase)).c_str());
  std::printf("epoch %llu of %llu, top-1 %.2f%%, %u restarts\n",
              static_cast<unsigned long long>(report.epoch),
              static_cast<unsigned long long>(report.epochs),
              100 * report.accuracy,
              report.restarts);
  if (!report.message.empty()) {
    std::printf("%s\n", report.message.c_str());
  }
  if (status.live) {
    std::printf("%llu of %llu examples, loss %.4f, %.0f examples/s\n",
                static_cast<unsigned long long>(report.counted_examples),
                static_cast<unsigned long long>(report.total_examples),
                report.training_loss,
                report.examples_per_second);
    PrintMembers(report);
  } else if (report.phase != controller::Phase::kSucceeded) {
    std::printf("go on with: adamant train --resume %s\n", run_dir.c_str());
  }
}

int Status(const StatusFlags& flags) {
  const absl::StatusOr<local::RunStatus> status = local::ReadRunStatus(flags.run_dir);
  if (!status.ok()) {
    PrintError(std::string(status.status().message()));
    return absl::IsNotFound(status.status()) ? kBadInput : kCannotRun;
  }
  if (flags.output == Output::kJson) {
    std::printf("%s\n", local::ProgressJson(local::TimeStamp(), status->report).c_str());
  } else {
    PrintText(*status, flags.run_dir);
  }
  return kOk;
}

}  // namespace

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("status", "Show how a run stands");
  const auto flags = std::make_shared<StatusFlags>();
  command.add_option("RUN_DIR", flags->run_dir, "Folder of the run")->required();
  const std::map<std::string, Output> outputs = {{"text", Output::kText}, {"json", Output::kJson}};
  command.add_option("--output", flags->output, "text or json")
      ->transform(CLI::CheckedTransformer(outputs).description(""));
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Status(*flags); });
}

}  // namespace adamant::cli
