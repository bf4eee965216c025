#include "operator/cli/commands/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "operator/cli/commands/commands.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"

namespace adamant::cli {
namespace {

// One command of the tree: what may follow it on the command line. Those without a group are for
// the programs of a cluster, and not offered.
struct Node {
  std::string path;  // "data digits"; empty for the program
  const CLI::App* app;
};

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
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

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

bool TakesValue(const CLI::Option& option) { return option.get_expected_min() > 0; }

std::vector<std::string> OptionNames(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  return names;
}

// What may follow, as text for a person and without it.
struct Offer {
  std::string word;
  std::string description;
};

std::vector<Offer> Options(const CLI::App& app) {
  std::vector<Offer> offers;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : OptionNames(*option)) {
      offers.push_back({name, option->get_description()});
    }
  }
  return offers;
}

// Subcommands, and the words that an argument without a name may be.
std::vector<Offer> Words(const CLI::App& app) {
  std::vector<Offer> offers;
  for (const CLI::App* command : Subcommands(app)) {
    offers.push_back({command->get_name(), command->get_description()});
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      for (const std::string& word : WordsOf(*option)) {
        offers.push_back({word, option->get_description()});
      }
    }
  }
  return offers;
}

std::string JoinedWords(const std::vector<Offer>& offers) {
  std::vector<std::string> words;
  for (const Offer& offer : offers) {
    words.push_back(offer.word);
  }
  return Joined(words);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

// The branches of a `case "$at/$word"` that walk the words typed so far down the tree.
std::string Steps(const std::vector<Node>& nodes) {
  std::string steps;
  for (const Node& node : nodes) {
    for (const CLI::App* command : Subcommands(*node.app)) {
      const std::string name = command->get_name();
      const std::string path = node.path.empty() ? name : Concat({node.path, " ", name});
      steps += Concat({"      '", node.path, "/", name, "') at='", path, "' ;;\n"});
    }
  }
  return steps;
}

// How a shell offers what an option may take: files where it is anything, folders, or the words
// between `words` and `after`.
struct Offering {
  std::string files;
  std::string folders;
  std::string words;
  std::string after;
};

// The first argument without a name that is a folder.
bool BeginsWithFolder(const CLI::App& app) {
  const std::vector<const CLI::Option*> options = app.get_options();
  const auto first = std::ranges::find_if(
      options, [](const CLI::Option* option) { return option->get_positional(); });
  return first != options.end() && TakesFolder(**first);
}

// For each option with a value, a branch of a `case "$at $before"`.
std::string Values(const std::vector<Node>& nodes, const Offering& offering) {
  std::string values;
  for (const Node& node : nodes) {
    for (const CLI::Option* option : node.app->get_options()) {
      for (const std::string& name :
           TakesValue(*option) ? OptionNames(*option) : std::vector<std::string>()) {
        const std::vector<std::string> known = WordsOf(*option);
        values += Concat({"    '", node.path, " ", name, "') "});
        if (TakesFolder(*option)) {
          values += offering.folders;
        } else {
          values += known.empty() ? offering.files
                                  : Concat({offering.words, Joined(known), offering.after});
        }
        values += " ;;\n";
      }
    }
  }
  return values;
}

// Where nothing is offered, bash itself offers files.
std::string Bash(const std::vector<Node>& nodes) {
  const std::string folders = "compopt +o bashdefault +o default -o dirnames";
  std::string choices;
  for (const Node& node : nodes) {
    choices += Concat({"        '", node.path, "/-'*) offered='"});
    choices += JoinedWords(Options(*node.app)) + "' ;;\n";
    choices += Concat({"        '", node.path, "/'*) "});
    choices +=
        BeginsWithFolder(*node.app) ? folders : "offered='" + JoinedWords(Words(*node.app)) + "'";
    choices += " ;;\n";
  }
  return "_adamant() {\n"
         "  local at='' word before='' offered='' current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
         "  [ \"$current\" != = ] || current=''  # bash makes three words of --option=value\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    [ \"$word\" != = ] || continue\n"
         "    case \"$at/$word\" in\n" +
         Steps(nodes) +
         "    esac\n"
         "    before=\"$word\"\n"
         "  done\n"
         "  case \"$at $before\" in\n" +
         Values(nodes, {.files = "", .folders = folders, .words = "offered='", .after = "'"}) +
         "    *)\n"
         "      case \"$at/$current\" in\n" +
         choices +
         "      esac ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$offered\" -- \"$current\"))\n"
         "}\n"
         "complete -o bashdefault -o default -F _adamant adamant\n";
}

std::string Described(const std::vector<Offer>& offers) {
  std::string text;
  for (const Offer& offer : offers) {
    text += (text.empty() ? "" : " ") + Quoted(offer.word + ":" + offer.description);
  }
  return text;
}

// Works as a file `_adamant` in a folder of $fpath, which is run at the first TAB, and sourced.
std::string Zsh(const std::vector<Node>& nodes) {
  std::string choices;
  for (const Node& node : nodes) {
    choices += Concat({"        '", node.path, "/-'*) offered=("});
    choices += Described(Options(*node.app)) + "); _describe -o option offered ;;\n";
    const std::vector<Offer> words = Words(*node.app);
    choices += Concat({"        '", node.path, "/'*) "});
    if (words.empty()) {
      choices += BeginsWithFolder(*node.app) ? "_files -/ ;;\n" : "_files ;;\n";
    } else {
      choices += "offered=(" + Described(words) + "); _describe word offered ;;\n";
    }
  }
  return "#compdef adamant\n"
         "_adamant() {\n"
         "  local at='' word before=''\n"
         "  local -a offered\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    case \"$at/$word\" in\n" +
         Steps(nodes) +
         "    esac\n"
         "    before=\"$word\"\n"
         "  done\n"
         "  if [[ \"$PREFIX\" == --*=* ]]; then\n"
         "    before=\"${PREFIX%%=*}\"\n"
         "    compset -P 1 '*='\n"
         "  fi\n"
         "  case \"$at $before\" in\n" +
         Values(nodes,
                {.files = "_files", .folders = "_files -/", .words = "compadd -- ", .after = ""}) +
         "    *)\n"
         "      case \"$at/$PREFIX\" in\n" +
         choices +
         "      esac ;;\n"
         "  esac\n"
         "}\n"
         "if [[ \"${funcstack[1]}\" == _adamant ]]; then\n"
         "  _adamant \"$@\"\n"
         "else\n"
         "  compdef _adamant adamant\n"
         "fi\n";
}

std::string FishQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
  }
  return quoted + "'";
}

std::string FishOption(const CLI::Option& option, const std::string& condition) {
  const std::vector<std::string> words = WordsOf(option);
  std::string value = TakesValue(option) ? " -r" : "";
  if (TakesFolder(option)) {
    value = " -x -a '(__fish_complete_directories (commandline -ct))'";
  }
  if (!words.empty()) {
    value = " -x -a " + Quoted(Joined(words));
  }
  std::string script;
  for (const std::string& name : option.get_lnames()) {
    script += Concat({"complete -c adamant -n '", condition, "' -l ", name, value});
    script += " -d " + FishQuoted(option.get_description()) + "\n";
  }
  return script;
}

std::string Fish(const std::vector<Node>& nodes) {
  std::string script = "complete -c adamant -e\n";
  for (const Node& node : nodes) {
    const std::string parent = node.path.substr(node.path.rfind(' ') + 1);
    const std::string condition =
        node.path.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + parent;
    const std::vector<Offer> words = Words(*node.app);
    const std::string here =
        node.path.empty()
            ? condition
            : Concat({condition, "; and not __fish_seen_subcommand_from ", JoinedWords(words)});
    for (const Offer& offer : words) {
      script += Concat({"complete -c adamant -f -n '", here, "' -a ", offer.word});
      script += " -d " + FishQuoted(offer.description) + "\n";
    }
    for (const CLI::Option* option : node.app->get_options()) {
      script += FishOption(*option, condition);
    }
  }
  return script;
}

constexpr char kExamples[] = R"(Examples:
  adamant completion bash > ~/.local/share/bash-completion/completions/adamant
  mkdir -p ~/.zfunc && adamant completion zsh > ~/.zfunc/_adamant
      For zsh, whose ~/.zshrc then needs, before anything else that calls compinit:
      fpath=(~/.zfunc $fpath); autoload -U compinit; compinit
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
  AddChoice<Shell>(command,
                   "SHELL",
                   *shell,
                   {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
                   "Which shell")
      ->required();
  command.footer(kExamples);
  command.callback([shell, &app, &exit_code] {
    std::printf("%s", CompletionScript(app, *shell).c_str());
    exit_code = kOk;
  });
}

}  // namespace adamant::cli
