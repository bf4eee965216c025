#include "operator/local/checkpoints/records_file.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "services/common/base/checksum.h"

namespace adamant::local {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::uint64_t kFormatVersion = 1;

void Append(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::uint64_t ChecksumOf(std::string_view bytes) {
  return Checksum(std::as_bytes(std::span(bytes)));
}

// Takes what it reads from the front of `bytes`; nullopt where they end before.
std::optional<std::uint64_t> TakeNumber(std::string_view& bytes) {
  std::uint64_t number = 0;
  if (bytes.size() < sizeof(number)) {
    return std::nullopt;
  }
  std::memcpy(&number, bytes.data(), sizeof(number));
  bytes.remove_prefix(sizeof(number));
  return number;
}

std::optional<std::string> TakeText(std::string_view& bytes) {
  const std::optional<std::uint64_t> size = TakeNumber(bytes);
  if (!size || *size > bytes.size()) {
    return std::nullopt;
  }
  std::string text(bytes.substr(0, *size));
  bytes.remove_prefix(*size);
  return text;
}

absl::Status Damaged() { return absl::DataLossError("it is damaged, or cut off"); }

}  // namespace

std::string EncodeRecords(const Records& records) {
  std::string bytes;
  Append(bytes, kFormatVersion);
  Append(bytes, records.size());
  for (const auto& [key, value] : records) {
    Append(bytes, key.size());
    bytes += key;
    Append(bytes, value.size());
    bytes += value;
  }
  Append(bytes, ChecksumOf(bytes));
  return bytes;
}

absl::StatusOr<Records> DecodeRecords(std::string_view bytes) {
  std::string_view rest = bytes;
  const std::optional<std::uint64_t> version = TakeNumber(rest);
  if (version && *version != kFormatVersion) {
    return absl::FailedPreconditionError("it has format version " + std::to_string(*version) +
                                         ", this program reads " + std::to_string(kFormatVersion));
  }
  std::uint64_t checksum = 0;
  if (rest.size() < sizeof(checksum)) {
    return Damaged();
  }
  std::memcpy(&checksum, rest.end() - sizeof(checksum), sizeof(checksum));
  rest.remove_suffix(sizeof(checksum));
  if (checksum != ChecksumOf(bytes.substr(0, bytes.size() - sizeof(checksum)))) {
    return Damaged();
  }
  Records records;
  for (std::uint64_t left = TakeNumber(rest).value_or(0); left > 0; --left) {
    std::optional<std::string> key = TakeText(rest);
    std::optional<std::string> value = TakeText(rest);
    if (!key || !value) {
      return Damaged();
    }
    records.emplace(*std::move(key), *std::move(value));
  }
  return rest.empty() ? absl::StatusOr<Records>(std::move(records)) : Damaged();
}

}  // namespace adamant::local
