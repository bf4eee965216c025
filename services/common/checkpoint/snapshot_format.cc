#include "services/common/checkpoint/snapshot_format.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "services/common/base/checksum.h"

namespace adamant::checkpoint {
namespace {

constexpr int kMarkFormatVersion = 1;
constexpr std::string_view kCopyPrefix = "snapshot/";  // before the marks, as keys are ordered

/// After all that a key may go on with.
constexpr char kLast[] = "\xff";

std::string Hex(std::uint64_t snapshot) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, snapshot);
  return text;
}

}  // namespace

std::string MarkKey(std::uint64_t snapshot, BucketId bucket) {
  char text[16];
  std::snprintf(text, sizeof(text), "/%08x", bucket.value());
  return std::string(kMarkPrefix) + Hex(snapshot) + text;
}

std::optional<std::pair<std::uint64_t, BucketId>> ParseMarkKey(std::string_view key) {
  if (!key.starts_with(kMarkPrefix)) {
    return std::nullopt;
  }
  const std::string_view name = key.substr(kMarkPrefix.size());
  std::uint64_t snapshot = 0;
  std::uint32_t bucket = 0;
  const auto hex = std::from_chars(name.begin(), name.end(), snapshot, 16);
  if (hex.ec != std::errc() || hex.ptr == name.end() ||
      std::from_chars(hex.ptr + 1, name.end(), bucket, 16).ec != std::errc()) {
    return std::nullopt;
  }
  return std::pair(snapshot, BucketId(bucket));
}

std::string CopyPrefix(std::uint64_t snapshot, BucketId bucket) {
  char text[16];
  std::snprintf(text, sizeof(text), "/%08x/", bucket.value());
  return std::string(kCopyPrefix) + Hex(snapshot) + text;
}

std::array<std::string, 2> SnapshotPrefixes(std::uint64_t snapshot) {
  const std::string name = Hex(snapshot) + "/";
  return {std::string(kCopyPrefix) + name, std::string(kMarkPrefix) + name};
}

std::string EncodeMark(const protocol::SnapshotBucket& about) {
  char text[128];
  std::snprintf(text,
                sizeof(text),
                "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %016" PRIx64,
                kMarkFormatVersion,
                about.configuration_version.value(),
                about.generation,
                about.updates,
                about.checksum);
  return text;
}

absl::StatusOr<protocol::SnapshotBucket> DecodeMark(BucketId bucket, const std::string& text) {
  protocol::SnapshotBucket about{.bucket = bucket};
  int format_version = 0;
  std::uint64_t version = 0;
  const int read = std::sscanf(text.c_str(),
                               "%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64,
                               &format_version,
                               &version,
                               &about.generation,
                               &about.updates,
                               &about.checksum);
  if (read != 5 || format_version != kMarkFormatVersion) {
    return absl::FailedPreconditionError("the mark of a snapshot says \"" + text +
                                         "\", this program reads format version " +
                                         std::to_string(kMarkFormatVersion));
  }
  about.configuration_version = version;
  return about;
}

std::uint64_t ChecksumOf(const ValueChecksums& checksums) {
  std::vector<std::uint64_t> all;
  for (const auto& [key, checksum] : checksums) {
    all.push_back(checksum);
  }
  return Checksum(std::as_bytes(std::span(all)));
}

std::string EndOf(std::string_view prefix) { return std::string(prefix) + kLast; }

storage::Change EraseAll(std::string prefix) {
  std::string end = EndOf(prefix);
  return {.key = std::move(prefix), .value = "", .erase = true, .end = std::move(end)};
}

}  // namespace adamant::checkpoint
