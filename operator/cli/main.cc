// adamant: trains deep networks on this machine, with the same services as on a cluster. By the
// name of kubectl-adamant it is kubectl's plugin for jobs in a cluster.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "operator/cli/commands/commands.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/run_app.h"
#include "operator/cli/kubectl/app.h"
#include "services/common/base/system/process.h"

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

constexpr char kVersion[] = "adamant " ADAMANT_VERSION;

// kubectl finds its plugins by the names of programs; ours are links to this one.
constexpr std::string_view kPlugin = "kubectl-adamant";
constexpr std::string_view kPluginCompletion = "kubectl_complete-adamant";

int KubectlMain(int argc, char** argv) {
  CLI::App app("Looks after Adamant's training jobs in a cluster.", "kubectl adamant");
  int exit_code = kOk;
  kubectl::AddCommands(app, exit_code);
  AddVersion(app, exit_code);
  return RunApp(app, argc, argv, exit_code);
}

int CompletionMain(int argc, char** argv) {
  CLI::App app("", "kubectl adamant");
  int unused = kOk;
  kubectl::AddCommands(app, unused);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  std::printf("%s", kubectl::Completions(app, words, kubectl::NamesOfJobs).c_str());
  return kOk;
}

int Main(int argc, char** argv) {
  CLI::App app("Adamant trains deep networks with a fault-tolerant parameter server.", "adamant");
  app.footer(kExamples);
  int exit_code = kOk;
  AddTrain(app, exit_code);
  AddValidate(app, exit_code);
  AddPlan(app, exit_code);
  AddData(app, exit_code);
  AddEval(app, exit_code);
  AddExport(app, exit_code);
  AddSaveModel(app, exit_code);
  AddServeOutput(app, exit_code);
  AddStatus(app, exit_code);
  AddVersion(app, exit_code);
  AddCompletion(app, exit_code);
  return RunApp(app, argc, argv, exit_code);
}

int MainOf(const std::string& program, int argc, char** argv) {
  return program == kPlugin             ? KubectlMain(argc, argv)
         : program == kPluginCompletion ? CompletionMain(argc, argv)
                                        : Main(argc, argv);
}

}  // namespace

void AddVersion(CLI::App& app, int& exit_code) {
  app.set_version_flag("--version", kVersion, "Print the version");
  CLI::App& command = *app.add_subcommand("version", "Print the version");
  command.footer("");
  command.callback([&exit_code] {
    std::printf("%s\n", kVersion);
    exit_code = kOk;
  });
}

}  // namespace adamant::cli

int main(int argc, char** argv) {
  adamant::PrepareProcess("adamant");
  try {
    const std::filesystem::path program = argc > 0 ? argv[0] : "";
    return adamant::cli::MainOf(program.filename().string(), argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    std::fprintf(stderr, "adamant: %s%s\n", error.what(), adamant::HintAtLimits(error));
    return adamant::cli::kCannotRun;
  }
}
