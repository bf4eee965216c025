#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace adamant::kube {

/// Objects of the API. Only sources include <nlohmann/json.hpp>.
using Json = nlohmann::json;

/// Keys from the outside in: {"metadata", "name"}.
using JsonPath = std::initializer_list<std::string_view>;

/// Errors: InvalidArgument, saying where the text stops being JSON, or that it is nested too deep.
absl::StatusOr<Json> ParseJson(std::string_view text);

/// Without spaces; bytes that are not UTF-8 are replaced.
std::string DumpJson(const Json& json);

/// Returns what stands at `path`, or null if nothing does (or something on the way is no object).
const Json* Find(const Json& json, JsonPath path);

/// The value at `path`, or `fallback` where there is none of that type.
std::string StringAt(const Json& json, JsonPath path, std::string_view fallback = "");
std::int64_t IntAt(const Json& json, JsonPath path, std::int64_t fallback = 0);
bool BoolAt(const Json& json, JsonPath path, bool fallback = false);

}  // namespace adamant::kube
