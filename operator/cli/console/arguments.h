#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Arguments of command lines that are checked before anything is done. A wrong one is told as
/// "--NAME: what is wrong", and the exit code is kBadInput.
namespace adamant::cli {

/// One of a few words; help shows them and completion offers them.
CLI::Validator OneOf(const std::vector<std::string>& words);

/// A whole number from 0 on. CLI11 alone takes -1 for the largest there is.
CLI::Validator WholeNumber();

/// One of these; help shows them. CLI11's own calls a word a value out of range.
CLI::Validator WholeNumber(std::uint64_t least, std::uint64_t most);

/// The name of a file or folder.
CLI::Validator Path();

/// Declares an option that takes a folder.
CLI::Option* AddFolder(CLI::App& app,
                       const std::string& name,
                       std::string& value,
                       const std::string& description);

/// It does, and nothing else.
bool TakesFolder(const CLI::Option& option);

/// HOST:PORT to listen at.
CLI::Validator ListenAddress();

/// The words that an option takes; none when it takes anything.
std::vector<std::string> WordsOf(const CLI::Option& option);

/// "text|json": how WordsOf finds them again.
std::string TypeOf(const std::vector<std::string>& words);

/// Declares an option that takes one of the words, and puts what it stands for into `value`.
template <typename T>
CLI::Option* AddChoice(CLI::App& app,
                       const std::string& name,
                       T& value,
                       const std::vector<std::pair<std::string, T>>& choices,
                       const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) {
    words.push_back(word);
  }
  const auto set = [&value, choices](const std::string& given) {
    for (const auto& [word, meaning] : choices) {
      if (word == given) {
        value = meaning;
      }
    }
  };
  return app.add_option_function<std::string>(name, set, description)
      ->type_name(TypeOf(words))
      ->check(OneOf(words));
}

}  // namespace adamant::cli
