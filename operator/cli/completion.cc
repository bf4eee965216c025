#include "operator/cli/completion.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "operator/cli/commands.h"
#include "operator/cli/console/exit_codes.h"

namespace adamant::cli {
namespace {

// One command of the tree: what may follow it on the command line.
struct Node {
  std::string path;  // "data digits"; empty for the program
  const CLI::App* app;
};

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

void Collect(const CLI::App& app, const std::string& path, std::vector<Node>& nodes) {
  nodes.push_back({path, &app});
  for (const CLI::App* command : Subcommands(app)) {
    Collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), nodes);
  }
}

std::string Concat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += part;
  }
  return text;
}

std::string Escaped(const std::string& text, const std::string& special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string Words(const Node& node) {
  std::string words;
  for (const CLI::App* command : Subcommands(*node.app)) {
    words += command->get_name() + " ";
  }
  for (const std::string& name : OptionNames(*node.app)) {
    words += name + " ";
  }
  return words;
}

// Walks the words typed so far down the tree, then offers what may follow; paths otherwise.
std::string Bash(const std::vector<Node>& nodes) {
  std::string script =
      "_adamant() {\n"
      "  local path='' word current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path/$word\" in\n";
  std::string choices;
  for (const Node& node : nodes) {
    for (const CLI::App* command : Subcommands(*node.app)) {
      const std::string name = command->get_name();
      const std::string path = node.path.empty() ? name : Concat({node.path, " ", name});
      script += Concat({"      '", node.path, "/", name, "') path='", path, "' ;;\n"});
    }
    choices += Concat({"    '", node.path, "') words='", Words(node), "' ;;\n"});
  }
  return script +
         "    esac\n"
         "  done\n"
         "  local words=''\n"
         "  case \"$path\" in\n" +
         choices +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _adamant adamant\n";
}

std::string Zsh(const std::vector<Node>& nodes) {
  return "#compdef adamant\nautoload -U +X bashcompinit && bashcompinit\n" + Bash(nodes);
}

std::string Fish(const std::vector<Node>& nodes) {
  std::string script = "complete -c adamant -e\n";
  for (const Node& node : nodes) {
    const std::string parent = node.path.substr(node.path.rfind(' ') + 1);
    std::string condition = "__fish_use_subcommand";
    if (!node.path.empty()) {
      condition = "__fish_seen_subcommand_from " + parent;
    }
    std::string names;
    for (const CLI::App* command : Subcommands(*node.app)) {
      names += " " + command->get_name();
    }
    const std::string here =
        node.path.empty() ? condition
                          : Concat({condition, "; and not __fish_seen_subcommand_from", names});
    for (const CLI::App* command : Subcommands(*node.app)) {
      const std::string text = Escaped(command->get_description(), "'\\");
      script += Concat({"complete -c adamant -f -n '", here, "' -a ", command->get_name()});
      script += Concat({" -d '", text, "'\n"});
    }
    for (const CLI::Option* option : node.app->get_options()) {
      const std::string text = Escaped(option->get_description(), "'\\");
      const std::string_view value = option->get_expected_min() > 0 ? " -r" : "";
      for (const std::string& name : option->get_lnames()) {
        script += Concat({"complete -c adamant -n '", condition, "' -l ", name, value});
        script += Concat({" -d '", text, "'\n"});
      }
    }
  }
  return script;
}

constexpr char kExamples[] = R"(Examples:
  adamant completion bash > ~/.local/share/bash-completion/completions/adamant
  adamant completion zsh > "${fpath[1]}/_adamant"
  adamant completion fish > ~/.config/fish/completions/adamant.fish)";

}  // namespace

std::string CompletionScript(const CLI::App& app, Shell shell) {
  std::vector<Node> nodes;
  Collect(app, "", nodes);
  switch (shell) {
    case Shell::kBash:
      return Bash(nodes);
    case Shell::kZsh:
      return Zsh(nodes);
    case Shell::kFish:
      return Fish(nodes);
  }
  return "";
}

void AddCompletion(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("completion", "Print a completion script for a shell");
  const auto shell = std::make_shared<Shell>(Shell::kBash);
  const std::map<std::string, Shell> shells = {
      {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
  command.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->transform(CLI::CheckedTransformer(shells).description(""));
  command.footer(kExamples);
  command.callback([shell, &app, &exit_code] {
    std::printf("%s", CompletionScript(app, *shell).c_str());
    exit_code = kOk;
  });
}

}  // namespace adamant::cli
