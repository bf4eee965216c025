// adamant: trains deep networks on this machine, with the same services as on a cluster.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/exit_codes.h"
#include "operator/cli/print_error.h"
#include "services/common/job/problems.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant train deploy/examples/digits.yaml     train, with a live bar
  adamant train --resume runs/digits-...        go on after Ctrl-C or a crash
  adamant status runs/digits-...                how a run stands
  adamant eval runs/digits-...                  accuracy of its model
  adamant export runs/digits-... --format onnx --out digits.onnx
  adamant validate job.yaml                     check a manifest

`adamant COMMAND --help` tells more.
Exit codes: 0 success, 1 the job failed, 2 bad flags, manifest or data,
3 stopped and can be resumed, 4 this machine does not let it run.)";

// CLI11 would only say that a command is missing.
std::string UnknownCommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    return "";
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string given = argv[1];
  if (std::find(names.begin(), names.end(), given) != names.end()) {
    return "";
  }
  const std::string hint = job::DidYouMean(given, names);
  return "there is no command " + job::Quote(given) +
         (hint.empty() ? "; see adamant --help" : "; " + hint);
}

int Main(int argc, char** argv) {
  CLI::App app("Adamant trains deep networks with a fault-tolerant parameter server.", "adamant");
  app.require_subcommand(1);
  app.footer(kExamples);
  int exit_code = kOk;
  AddTrain(app, exit_code);
  AddValidate(app, exit_code);
  AddData(app, exit_code);
  AddEval(app, exit_code);
  AddExport(app, exit_code);
  AddSaveModel(app, exit_code);
  AddStatus(app, exit_code);
  AddVersion(app, exit_code);
  AddCompletion(app, exit_code);
  if (const std::string problem = UnknownCommand(app, argc, argv); !problem.empty()) {
    PrintError(problem);
    return kBadInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kBadInput;
  }
  return exit_code;
}

}  // namespace

void AddVersion(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("version", "Print the version");
  command.callback([&exit_code] {
    std::printf("adamant %s\n", ADAMANT_VERSION);
    exit_code = kOk;
  });
}

}  // namespace adamant::cli

int main(int argc, char** argv) {
  try {
    return adamant::cli::Main(argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "adamant: %s\n", error.what());
    return adamant::cli::kCannotRun;
  }
}
