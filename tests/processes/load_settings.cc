#include "tests/processes/load_settings.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace adamant::processes {

absl::StatusOr<LoadSettings> ParseLoadSettings(const std::string& text) {
  LoadSettings settings;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    std::istringstream digits(word.substr(std::min(equals + 1, word.size())));
    std::uint64_t value = 0;
    const bool number = (digits >> value) && digits.eof();
    const auto set = [&](std::string_view name, auto assign) {
      if (key == name && number) {
        assign();
        return true;
      }
      return false;
    };
    const bool known =
        set("rate", [&] { settings.rate = value; }) ||
        set("poison_every", [&] { settings.poison_every = value; }) ||
        set("reads", [&] { settings.reads = value; }) ||
        set("retain", [&] { settings.retain = value != 0; }) ||
        set("retry", [&] { settings.retry = std::chrono::milliseconds(value); }) ||
        set("shortest_gap", [&] { settings.shortest_gap = std::chrono::milliseconds(value); });
    if (!known) {
      return absl::InvalidArgumentError("not a setting of the load: \"" + word + "\"");
    }
  }
  return settings;
}

}  // namespace adamant::processes
