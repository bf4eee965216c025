#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/display.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/console/status_view.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/control/status_codec.h"
#include "operator/local/history/record.h"
#include "operator/local/state/run_status.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant status runs/first
  adamant status runs/first --buckets
      With a table of the buckets. 1.2 is incarnation 2 of parameter-server-1;
      +1.2 is about to become a member.
  adamant status runs/first --output json

Works while the job runs and after it has ended.)";

struct StatusFlags {
  std::string run_folder;
  bool buckets = false;
  Output output = Output::kText;
};

void PrintText(v1::JobStatus status, const local::RunStatus& run, const StatusFlags& flags) {
  const controller::JobReport& report = run.report;
  status.set_phase(RunPhase(status.phase(), run.live));
  std::printf("%s", StatusText(status, run.live).c_str());
  if (flags.buckets) {
    const std::string table = BucketTable(status);
    std::printf("%s", table.empty() ? "no buckets yet\n" : table.c_str());
  }
  const bool succeeded = report.phase == controller::Phase::kSucceeded;
  const std::string next =
      run.live || run.anothers || succeeded ? "" : WhatNext(report, flags.run_folder);
  if (!next.empty()) {
    std::printf("%s\n", next.c_str());
  }
}

int Status(const StatusFlags& flags) {
  const absl::StatusOr<local::RunStatus> run = local::ReadRunStatus(flags.run_folder);
  if (!run.ok()) {
    PrintError(std::string(run.status().message()));
    const bool bad_input = absl::IsNotFound(run.status()) || absl::IsInvalidArgument(run.status());
    return bad_input ? kBadInput : kCannotRun;
  }
  if (!run->damage.empty()) {
    std::fprintf(
        stderr, "warning: the other copy of the state is shown: %s\n", run->damage.c_str());
  }
  for (const std::string& warning : {run->gone_back, run->not_taken}) {
    if (!warning.empty()) {
      PrintWarnings({warning});
    }
  }
  if (run->anothers) {
    PrintWarnings({"its processes are another user's: this is what they have stored last"});
  }
  v1::JobStatus status = control::Encode(run->report);
  if (!run->live && !run->anothers && !controller::IsFinal(run->report.phase)) {
    status.set_phase("Interrupted");  // its controller is gone without having ended it
  }
  if (flags.output == Output::kJson) {
    std::printf("%s\n", StatusJson(local::TimeStamp(), status, run->live).c_str());
  } else {
    PrintText(status, *run, flags);
  }
  return kOk;
}

}  // namespace

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("status", "Show how a run stands");
  const auto flags = std::make_shared<StatusFlags>();
  AddFolder(command, "RUN_DIR", flags->run_folder, "Folder of the run")->required();
  command.add_flag("--buckets", flags->buckets, "With a table of the buckets");
  AddOutput(command, flags->output);
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Status(*flags); });
}

}  // namespace adamant::cli
