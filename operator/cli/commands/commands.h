#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

/// The subcommands of `adamant`. Each Add function declares one, with a callback that runs it and
/// leaves an ExitCode in `exit_code`. Both arguments must outlive the parsing.
namespace adamant::cli {

void AddTrain(CLI::App& app, int& exit_code);
void AddValidate(CLI::App& app, int& exit_code);
void AddPlan(CLI::App& app, int& exit_code);
void AddData(CLI::App& app, int& exit_code);
void AddEval(CLI::App& app, int& exit_code);
void AddExport(CLI::App& app, int& exit_code);
void AddSaveModel(CLI::App& app, int& exit_code);
void AddServeOutput(CLI::App& app, int& exit_code);
void AddStatus(CLI::App& app, int& exit_code);
void AddVersion(CLI::App& app, int& exit_code);  ///< and --version
void AddCompletion(CLI::App& app, int& exit_code);

}  // namespace adamant::cli
