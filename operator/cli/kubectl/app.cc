#include "operator/cli/kubectl/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/cli/console/arguments.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/commands.h"
#include "operator/kube/api/custom_resources.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

constexpr std::chrono::seconds kCompletionTime{2};
constexpr char kNoFiles[] = ":4\n";  // ShellCompDirectiveNoFileComp

constexpr char kExamples[] = R"(Examples:
  kubectl adamant status mnist          how it stands
  kubectl adamant explain mnist         why it waits, restarted or failed
  kubectl adamant logs mnist worker -f  what its workers write
  kubectl adamant export mnist          its model, metrics and plot, to this machine
  kubectl adamant check                 whether jobs train here, and survive the loss of a pod

`kubectl adamant COMMAND --help` tells more.
Exit codes: 0 success, 1 the job failed, 2 bad flags or no such job,
3 stopped by the user, 4 the cluster cannot be reached or does not let it.)";

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) {
      return command;
    }
  }
  return nullptr;
}

// The option of that name, "--context" or "-n"; null if there is none.
const CLI::Option* FindOption(const CLI::App& command, const std::string& name) {
  return name.starts_with("-") ? command.get_option_no_throw(name) : nullptr;
}

bool TakesValue(const CLI::Option* option) {
  return option != nullptr && option->get_expected_min() > 0;
}

// Which cluster the words so far are about, and how many of them are no options.
struct Parsed {
  Target target;
  std::vector<std::string> positional;
};

Parsed Parse(const CLI::App& command, const std::vector<std::string>& words) {
  Parsed parsed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const CLI::Option* option = FindOption(command, name);
    if (option == nullptr) {
      parsed.positional.push_back(words[i]);
      continue;
    }
    std::string value;
    if (equals != std::string::npos) {
      value = words[i].substr(equals + 1);
    } else if (TakesValue(option) && i + 1 < words.size()) {
      value = words[++i];
    }
    if (option->check_lname("namespace")) {
      parsed.target.ns = value;
    } else if (option->check_lname("context")) {
      parsed.target.config.context = value;
    } else if (option->check_lname("kubeconfig")) {
      parsed.target.config.kubeconfig = value;
    }
  }
  return parsed;
}

std::vector<std::string> Candidates(const CLI::App& app,
                                    const std::vector<std::string>& words,
                                    const JobNames& job_names) {
  std::vector<std::string> found;
  if (words.size() < 2) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      found.push_back(command->get_name() + "\t" + command->get_description());
    }
    return found;
  }
  const CLI::App* command = FindCommand(app, words.front());
  if (command == nullptr) {
    return found;
  }
  if (words.back().starts_with("-")) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        found.push_back("--" + name + "\t" + option->get_description());
      }
    }
    return found;
  }
  const Parsed parsed = Parse(*command, {words.begin() + 1, words.end() - 1});
  const CLI::Option* const before = FindOption(*command, words[words.size() - 2]);
  if (TakesValue(before)) {
    return cli::WordsOf(*before);
  }
  if (parsed.positional.empty() && command->get_option_no_throw("JOB") != nullptr) {
    return job_names(parsed.target);
  }
  return words.front() == "logs"
             ? std::vector<std::string>{"worker", "data-server", "parameter-server"}
             : found;
}

}  // namespace

void AddCommands(CLI::App& app, int& exit_code) {
  app.footer(kExamples);
  AddStatus(app, exit_code);
  AddExplain(app, exit_code);
  AddEvents(app, exit_code);
  AddLogs(app, exit_code);
  AddCheckpoint(app, exit_code);
  AddExport(app, exit_code);
  AddCheck(app, exit_code);
}

std::vector<std::string> NamesOfJobs(const Target& target) {
  std::vector<std::string> names;
  UseCluster(target, [&names](Session& session) -> absl::Status {
    ADAMANT_ASSIGN_OR_RETURN(
        const std::vector<Json> jobs,
        session.client.With(kCompletionTime).List(kube::kTrainingJobs, {.ns = session.ns}));
    for (const Json& job : jobs) {
      names.push_back(kube::KeyOf(job).name);
    }
    return absl::OkStatus();
  }).IgnoreError();  // nothing is offered then
  return names;
}

std::string Completions(const CLI::App& app,
                        const std::vector<std::string>& words,
                        const JobNames& job_names) {
  std::string text;
  for (const std::string& candidate : Candidates(app, words, job_names)) {
    if (words.empty() || candidate.starts_with(words.back())) {
      text += candidate + "\n";
    }
  }
  return text + kNoFiles;
}

}  // namespace adamant::kubectl
