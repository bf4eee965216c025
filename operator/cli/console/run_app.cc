#include "operator/cli/console/run_app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/output_file.h"
#include "operator/cli/console/print_error.h"
#include "services/common/job/yaml/problems.h"

namespace adamant::cli {
namespace {

// CLI11 would only say that a command is missing.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().starts_with("-")) {
    return "";
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  const std::string& given = arguments.front();
  if (std::find(names.begin(), names.end(), given) != names.end()) {
    return "";
  }
  const std::string hint = job::DidYouMean(given, names);
  return "there is no command " + job::Quote(given) +
         (hint.empty() ? "; see " + app.get_name() + " --help" : "; " + hint);
}

constexpr char kHelp[] = "help";

// `help COMMAND` says what `COMMAND --help` says.
void AddHelp(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) {
      names.push_back(command->get_name());
    }
  }
  CLI::App& command = *app.add_subcommand(kHelp, "Say what a command does, as its --help");
  command.footer("");
  command.add_option("COMMAND", "Name of a command [all]")->type_name(TypeOf(names));
}

std::vector<std::string> ArgumentsOf(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == kHelp) {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  return arguments;
}

// "did you mean --run-dir?" for an option that the command does not have; "" if none is near.
std::string MeantOption(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  for (const std::string& given : app.remaining(/*recurse=*/true)) {
    if (!given.starts_with("--")) {
      continue;
    }
    if (std::string hint = job::DidYouMean(given.substr(0, given.find('=')), names);
        !hint.empty()) {
      return hint;
    }
  }
  return "";
}

// Of a command that has done what it was asked for, if only somebody could read it.
int CodeOf(int exit_code) {
  const absl::Status written = exit_code == kOk ? FlushOutput() : absl::OkStatus();
  if (written.ok()) {
    return exit_code;
  }
  PrintError(std::string(written.message()));
  return kCannotRun;
}

}  // namespace

int RunApp(CLI::App& app, int argc, char** argv, const int& exit_code) {
  app.require_subcommand(1);
  AddHelp(app);
  std::vector<std::string> arguments = ArgumentsOf(argc, argv);
  if (const std::string problem = UnknownCommand(app, arguments); !problem.empty()) {
    PrintError(problem);
    return kBadInput;
  }
  std::ranges::reverse(arguments);  // as the library wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;  // what the library writes itself is lost without a reason
    const int code = app.exit(error, out, std::cerr);
    std::printf("%s", out.str().c_str());
    if (const std::string hint = code == 0 ? "" : MeantOption(app); !hint.empty()) {
      PrintError(hint);
    }
    return CodeOf(code == 0 ? kOk : kBadInput);
  }
  const bool leaves_files = app.get_subcommands().front()->get_name() == "train";
  return leaves_files ? exit_code : CodeOf(exit_code);
}

}  // namespace adamant::cli
