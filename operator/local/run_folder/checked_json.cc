#include "operator/local/run_folder/checked_json.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "services/common/base/checksum.h"
#include "services/common/base/text/nesting.h"

namespace adamant::local {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLevels = 16;  // a manifest has 3

std::string ChecksumOf(const Json& json) {
  const std::string text = json.dump();
  return HexText(Checksum(std::as_bytes(std::span(text))));
}

// The library converts numbers that are no counts into others without a word.
bool HasOnlyCounts(const Json& json) {
  return json.is_structured() ? std::all_of(json.begin(), json.end(), HasOnlyCounts)
                              : !json.is_number() || json.is_number_unsigned();
}

}  // namespace

std::string HexText(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

std::uint64_t ReadHex(const Json& json) {
  return std::strtoull(json.get<std::string>().c_str(), nullptr, 16);
}

std::string SealJson(Json json) {
  json["checksum"] = ChecksumOf(json);
  return json.dump(1) + "\n";
}

absl::StatusOr<Json> OpenJson(std::string_view text, std::uint64_t format_version) {
  Json json = NestsDeeper(text, kMostLevels)
                  ? Json()
                  : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format_version") || !json.contains("checksum")) {
    return DamagedManifest("it is no complete JSON object");
  }
  if (json["format_version"] != format_version) {
    return absl::FailedPreconditionError("the manifest has format version " +
                                         json["format_version"].dump() + ", this program reads " +
                                         std::to_string(format_version));
  }
  const Json checksum = json["checksum"];
  json.erase("checksum");
  if (checksum != ChecksumOf(json)) {
    return DamagedManifest("its checksum does not fit");
  }
  if (!HasOnlyCounts(json)) {
    return DamagedManifest("it has a number that is no count");
  }
  return json;
}

absl::Status DamagedManifest(const std::string& why) {
  return absl::DataLossError("the manifest is damaged: " + why);
}

}  // namespace adamant::local
