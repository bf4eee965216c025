// adamant: trains deep networks on this machine, with the same services as on a cluster.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "operator/cli/commands.h"
#include "operator/cli/exit_codes.h"

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
  AddStatus(app, exit_code);
  AddVersion(app, exit_code);
  AddCompletion(app, exit_code);
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

int main(int argc, char** argv) { return adamant::cli::Main(argc, argv); }
