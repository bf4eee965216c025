#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>

#include "operator/cli/commands/commands.h"
#include "operator/cli/commands/warnings_here.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/local/checkpoints/start_from.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant validate job.yaml
      Reports all that is wrong, each with file, line, column and field. Of a manifest that is right
      and of more than one training thread: what becomes of rate and momentum.
  adamant validate job.yaml --show-defaults
      Prints the manifest with every default filled in.

Exit codes: 0 the manifest is right, though there may be warnings; 2 it is not.)";

struct ValidateFlags {
  std::string job;
  bool show_defaults = false;
};

int Validate(const ValidateFlags& flags) {
  const job::ParseResult parsed = job::LoadJob(flags.job, job::DataReading::kWhole);
  PrintProblems(parsed.problems);
  if (parsed.job == nullptr) {
    std::fprintf(stderr,
                 "%s: %zu %s\n",
                 flags.job.c_str(),
                 parsed.problems.size(),
                 parsed.problems.size() == 1 ? "problem" : "problems");
    return kBadInput;
  }
  if (const absl::Status start = local::CheckStart(*parsed.job); !start.ok()) {
    PrintError(flags.job + ": " + std::string(start.message()));
    return kBadInput;
  }
  ExpectationText expectation = ExpectationOf(*parsed.job);
  std::ranges::move(WarningsHere(*parsed.job), std::back_inserter(expectation.warnings));
  if (flags.show_defaults) {
    std::printf("%s", job::ToYaml(*parsed.job).c_str());
  } else {
    std::printf("%s: right\n%s", flags.job.c_str(), expectation.lines.c_str());
  }
  PrintWarnings(expectation.warnings);
  return kOk;
}

}  // namespace

void AddValidate(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("validate", "Check a manifest and the data it names");
  const auto flags = std::make_shared<ValidateFlags>();
  command.add_option("JOB", flags->job, "Manifest of the job (YAML)")->required();
  command.add_flag("--show-defaults", flags->show_defaults, "Print it with all defaults");
  command.footer(kExamples);
  command.callback([flags, &exit_code] { exit_code = Validate(*flags); });
}

}  // namespace adamant::cli
