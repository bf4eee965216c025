#include "operator/kube_client/base/json.h"

#include <nlohmann/json.hpp>

#include "services/common/base/text/nesting.h"

namespace adamant::kube {
namespace {

constexpr std::size_t kMostLevels = 1000;  // no object comes near

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (NestsDeeper(text, kMostLevels)) {
    return absl::InvalidArgumentError("JSON of more than " + std::to_string(kMostLevels) +
                                      " levels");
  }
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(std::string("not JSON: ") + error.what());
  }
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* Find(const Json& json, JsonPath path) {
  const Json* at = &json;
  for (const std::string_view key : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto found = at->find(key);
    if (found == at->end()) {
      return nullptr;
    }
    at = &*found;
  }
  return at;
}

std::string StringAt(const Json& json, JsonPath path, std::string_view fallback) {
  const Json* found = Find(json, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string(fallback);
}

std::int64_t IntAt(const Json& json, JsonPath path, std::int64_t fallback) {
  const Json* found = Find(json, path);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : fallback;
}

bool BoolAt(const Json& json, JsonPath path, bool fallback) {
  const Json* found = Find(json, path);
  return found != nullptr && found->is_boolean() ? found->get<bool>() : fallback;
}

}  // namespace adamant::kube
