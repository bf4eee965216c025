#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace adamant::cli {

/// Parses the command line of a program that has subcommands, and runs the one that it names; adds
/// `help` to them.
/// Returns what that leaves in `exit_code`, or kBadInput with a message that helps.
int RunApp(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace adamant::cli
