// The manifest of a checkpoint: as it is, and with the checksum that fits it.

#include <nlohmann/json.hpp>
#include <span>

#include "operator/local/run_folder/checkpoint_file.h"
#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "services/common/base/text/nesting.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using local::CheckpointManifest;

std::string WithItsChecksum(std::string_view input) {
  if (NestsDeeper(input, 100)) {
    return std::string(input);
  }
  auto json = nlohmann::ordered_json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return std::string(input);
  }
  json.erase("checksum");
  const std::string text = json.dump();
  json["checksum"] = HexChecksum(std::as_bytes(std::span(text)));
  return json.dump();
}

}  // namespace

std::vector<std::string> Seeds() {
  CheckpointManifest manifest{.job_uid = 0xfedcba9876543210,
                              .checkpoint = {.snapshot = 3, .epoch = 2}};
  std::vector<std::string> seeds = {EncodeCheckpointManifest(manifest)};
  manifest.checkpoint.buckets = {{.slot = 1, .generation = 2, .updates = 300, .checksum = 4}};
  manifest.checkpoint.cuts = {{.worker = 1, .incarnation = 2, .sequence = 30}};
  seeds.push_back(EncodeCheckpointManifest(manifest));
  return seeds;
}

bool Try(std::string_view input) {
  const bool whole = local::DecodeCheckpointManifest(input).ok();
  const auto manifest = local::DecodeCheckpointManifest(WithItsChecksum(input));
  if (!manifest.ok()) {
    return whole;
  }
  const auto again = local::DecodeCheckpointManifest(EncodeCheckpointManifest(*manifest));
  ADAMANT_CHECK(again.ok() && again->job_uid == manifest->job_uid &&
                    again->checkpoint == manifest->checkpoint,
                "a manifest is written otherwise than it was read");
  return true;
}

}  // namespace adamant::fuzz
