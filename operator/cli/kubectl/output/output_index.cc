#include "operator/cli/kubectl/output/output_index.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/json.h"
#include "services/common/base/status_macros.h"

namespace adamant::kubectl {
namespace {

using kube::Json;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 44;  // bytes
constexpr std::size_t kMostFiles = 100;

// JSON's numbers do not hold 64 bits everywhere.
std::string Hex(std::uint64_t value) {
  char text[17] = {};
  const auto [end, error] = std::to_chars(text, text + 16, value, 16);
  return error == std::errc() ? std::string(text, end) : "";
}

bool ParseHex(const Json& json, std::uint64_t& value) {
  if (!json.is_string()) {
    return false;
  }
  const auto& text = json.get_ref<const std::string&>();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 255 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

bool Decode(const Json& json, OutputFile& file) {
  file.name = kube::StringAt(json, {"name"});
  const std::int64_t size = kube::IntAt(json, {"size"}, -1);
  const Json* pieces = kube::Find(json, {"pieces"});
  if (!IsFileName(file.name) || size < 0 || static_cast<std::uint64_t>(size) > kLargestFile ||
      pieces == nullptr || !pieces->is_array() ||
      pieces->size() != PiecesOf(static_cast<std::uint64_t>(size))) {
    return false;
  }
  file.size = static_cast<std::uint64_t>(size);
  for (const Json& piece : *pieces) {
    if (!ParseHex(piece, file.pieces.emplace_back())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::uint64_t PiecesOf(std::uint64_t size) {
  return size / kPieceBytes + (size % kPieceBytes == 0 ? 0 : 1);
}

std::string EncodeIndex(const std::vector<OutputFile>& files) {
  Json json = {{"files", Json::array()}};
  for (const OutputFile& file : files) {
    Json pieces = Json::array();
    for (const std::uint64_t piece : file.pieces) {
      pieces.push_back(Hex(piece));
    }
    json["files"].push_back(
        {{"name", file.name}, {"size", file.size}, {"pieces", std::move(pieces)}});
  }
  return kube::DumpJson(json);
}

absl::StatusOr<std::vector<OutputFile>> DecodeIndex(std::string_view text) {
  const absl::StatusOr<Json> json = kube::ParseJson(text);
  const Json* list = json.ok() ? kube::Find(*json, {"files"}) : nullptr;
  if (list == nullptr || !list->is_array() || list->size() > kMostFiles) {
    return absl::DataLossError("the pod does not tell what files there are");
  }
  std::vector<OutputFile> files;
  for (const Json& each : *list) {
    if (!Decode(each, files.emplace_back())) {
      return absl::DataLossError("the pod tells of a file that cannot be: " +
                                 kube::DumpJson(each).substr(0, 200));
    }
  }
  return files;
}

}  // namespace adamant::kubectl
