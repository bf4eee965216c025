#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace adamant::cli {

enum class Shell { kBash, kZsh, kFish };

/// A completion script for the program `app`, with all its subcommands and options.
std::string CompletionScript(const CLI::App& app, Shell shell);

}  // namespace adamant::cli
