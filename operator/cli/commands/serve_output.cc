// What the pod runs that `kubectl adamant export` reads a job's output from.

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "operator/cli/commands/commands.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "operator/cli/kubectl/output/output_server.h"

namespace adamant::cli {
namespace {

constexpr std::chrono::minutes kIdle{2};

}  // namespace

void AddServeOutput(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("serve-output", "Serve files of a folder for a while");
  command.group("");  // for pods, not for people
  const auto options = std::make_shared<kubectl::OutputServerOptions>();
  command.add_option("--listen", options->listen, "HOST:PORT")->required();
  command.add_option("--key", options->key, "First part of every path")->required();
  command.add_option("--folder", options->folder, "Folder of the files")->required();
  command.add_option("--file", options->names, "Names of files, where they are there")->required();
  command.callback([options, &exit_code] {
    const auto server = kubectl::OutputServer::Start(*options);
    if (!server.ok()) {
      PrintError(std::string(server.status().message()));
      exit_code = kCannotRun;
      return;
    }
    (*server)->ServeUntilIdle(kIdle);
    exit_code = kOk;
  });
}

}  // namespace adamant::cli
