#include "operator/cli/console/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <system_error>

#include "services/common/job/yaml/problems.h"

namespace adamant::cli {
namespace {

constexpr char kBetween = '|';
constexpr char kFolder[] = "FOLDER";  // as help shows it

// Whether all of `text` is a number from `least` to `most`, in digits alone.
bool IsNumber(const std::string& text, std::uint64_t most, std::uint64_t least = 0) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end && least <= number && number <= most;
}

// Help shows what a validator is called; an empty name is left out.
CLI::Validator Nameless(std::function<std::string(std::string&)> check) {
  return CLI::Validator(std::move(check), "");
}

}  // namespace

CLI::Validator OneOf(const std::vector<std::string>& words) {
  return Nameless([words](const std::string& given) {
    if (std::ranges::find(words, given) != words.end()) {
      return std::string();
    }
    std::string wrong = job::Quote(given) + " is not one of";
    for (const std::string& word : words) {
      wrong += (&word == &words.front() ? " " : ", ") + word;
    }
    return wrong;
  });
}

CLI::Validator WholeNumber() { return WholeNumber(0, UINT64_MAX).description(""); }

CLI::Validator WholeNumber(std::uint64_t least, std::uint64_t most) {
  const std::string from = std::to_string(least);
  const std::string to = std::to_string(most);
  return CLI::Validator(
      [=](const std::string& given) {
        return IsNumber(given, most, least)
                   ? ""
                   : job::Quote(given) + " is not a whole number from " + from + " to " + to;
      },
      "INT in [" + from + " - " + to + "]");
}

CLI::Validator Path() {
  return Nameless([](const std::string& given) {
    return given.empty() ? std::string("the name is empty") : std::string();
  });
}

CLI::Option* AddFolder(CLI::App& app,
                       const std::string& name,
                       std::string& value,
                       const std::string& description) {
  // An option that stands where the name is wanted would be taken for it.
  const CLI::Validator no_option = Nameless([](const std::string& given) {
    return given.starts_with("--") ? "its folder is missing before " + given : std::string();
  });
  return app.add_option(name, value, description)
      ->type_name(kFolder)
      ->check(Path())
      ->check(no_option);
}

bool TakesFolder(const CLI::Option& option) { return option.get_type_name() == kFolder; }

CLI::Validator ListenAddress() {
  return Nameless([](const std::string& given) {
    const std::size_t colon = given.rfind(':');
    const bool right =
        colon != std::string::npos && colon > 0 && IsNumber(given.substr(colon + 1), 65535);
    return right ? std::string()
                 : job::Quote(given) + " is not HOST:PORT with a port from 0 (any) to 65535";
  });
}

std::vector<std::string> WordsOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  std::vector<std::string> words;
  if (type.find(kBetween) != std::string::npos) {
    std::istringstream rest(type);
    for (std::string word; std::getline(rest, word, kBetween);) {
      words.push_back(word);
    }
  }
  return words;
}

std::string TypeOf(const std::vector<std::string>& words) {
  std::string type;
  for (const std::string& word : words) {
    type += (type.empty() ? "" : std::string(1, kBetween)) + word;
  }
  return type;
}

}  // namespace adamant::cli
