#include "operator/cli/console/run_app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/print_error.h"
#include "services/common/job/problems.h"

namespace adamant::cli {
namespace {

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
         (hint.empty() ? "; see " + app.get_name() + " --help" : "; " + hint);
}

}  // namespace

int RunApp(CLI::App& app, int argc, char** argv, const int& exit_code) {
  app.require_subcommand(1);
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

}  // namespace adamant::cli
