#include "tests/processes/proxy_behaviour.h"

#include <charconv>
#include <functional>

namespace adamant::processes {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kLongestMilliseconds = 600'000;
constexpr std::uint64_t kHighestRate = std::uint64_t{1} << 40;

struct Key {
  std::uint64_t at_most = 0;
  std::function<void(Behaviour&, std::uint64_t)> set;
};

const std::map<std::string, Key, std::less<>>& Keys() {
  static const auto& keys = *new std::map<std::string, Key, std::less<>>{
      {"delay",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.up.delay = b.down.delay = milliseconds(v); }}},
      {"delay_up",
       {kLongestMilliseconds, [](Behaviour& b, std::uint64_t v) { b.up.delay = milliseconds(v); }}},
      {"delay_down",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.down.delay = milliseconds(v); }}},
      {"jitter",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.up.jitter = b.down.jitter = milliseconds(v); }}},
      {"jitter_up",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.up.jitter = milliseconds(v); }}},
      {"jitter_down",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.down.jitter = milliseconds(v); }}},
      {"rate",
       {kHighestRate,
        [](Behaviour& b, std::uint64_t v) {
          b.up.bytes_per_second = b.down.bytes_per_second = v;
        }}},
      {"rate_up", {kHighestRate, [](Behaviour& b, std::uint64_t v) { b.up.bytes_per_second = v; }}},
      {"rate_down",
       {kHighestRate, [](Behaviour& b, std::uint64_t v) { b.down.bytes_per_second = v; }}},
      {"spread",
       {kLongestMilliseconds, [](Behaviour& b, std::uint64_t v) { b.spread = milliseconds(v); }}},
      {"reset_after",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.reset_after = milliseconds(v); }}},
      {"duplicate_delay",
       {kLongestMilliseconds,
        [](Behaviour& b, std::uint64_t v) { b.duplicate_delay = milliseconds(v); }}},
      {"hold", {1, [](Behaviour& b, std::uint64_t v) { b.hold = v != 0; }}},
      {"duplicate", {1, [](Behaviour& b, std::uint64_t v) { b.duplicate = v != 0; }}},
  };
  return keys;
}

}  // namespace

absl::StatusOr<Behaviour> ParseBehaviour(std::string_view text) {
  Behaviour behaviour;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
    const auto key = Keys().find(word.substr(0, equals));
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (key == Keys().end() || error != std::errc() || end != digits.data() + digits.size() ||
        value > key->second.at_most) {
      return absl::InvalidArgumentError("not a behaviour: \"" + std::string(word) + "\"");
    }
    key->second.set(behaviour, value);
  }
  return behaviour;
}

}  // namespace adamant::processes
