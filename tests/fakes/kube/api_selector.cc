#include "tests/fakes/kube/api_selector.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace adamant::kube {
namespace {

using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

bool MatchesOne(std::string_view term, const Lookup& lookup) {
  if (const std::size_t differs = term.find("!="); differs != std::string_view::npos) {
    return lookup(term.substr(0, differs)) != std::string(term.substr(differs + 2));
  }
  if (const std::size_t equals = term.find('='); equals != std::string_view::npos) {
    const std::size_t value = term.find_first_not_of('=', equals);
    const std::string wanted(value == std::string_view::npos ? "" : term.substr(value));
    return lookup(term.substr(0, equals)) == wanted;
  }
  return term.starts_with('!') ? !lookup(term.substr(1)).has_value() : lookup(term).has_value();
}

bool MatchesAll(std::string_view selector, const Lookup& lookup) {
  while (!selector.empty()) {
    const std::size_t comma = selector.find(',');
    if (!MatchesOne(selector.substr(0, comma), lookup)) {
      return false;
    }
    selector.remove_prefix(comma == std::string_view::npos ? selector.size() : comma + 1);
  }
  return true;
}

}  // namespace

bool MatchesLabels(const Json& object, std::string_view selector) {
  return MatchesAll(selector, [&object](std::string_view name) -> std::optional<std::string> {
    const Json* label = Find(object, {"metadata", "labels", name});
    return label != nullptr ? std::optional(label->get<std::string>()) : std::nullopt;
  });
}

bool MatchesFields(const Json& object, std::string_view selector) {
  return MatchesAll(selector, [&object](std::string_view path) -> std::optional<std::string> {
    const Json* at = &object;
    while (at != nullptr && !path.empty()) {
      const std::size_t dot = path.find('.');
      at = Find(*at, {path.substr(0, dot)});
      path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
    }
    return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
  });
}

}  // namespace adamant::kube
