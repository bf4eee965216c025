#include "services/data_server/core/ledger.h"

#include <span>

#include "services/common/base/checksum.h"

namespace adamant::data_server {
namespace {

// version 4, epoch 8, closed 1, counted 8, retrained 8, earlier 8, writer 4 + 8, batches 4,
// unattended epochs 4; then the bitmap, those epochs and the checksum.
constexpr std::uint32_t kFormatVersion = 2;
constexpr std::size_t kHeaderBytes = 57;
constexpr std::size_t kUnattendedBytes = 32;
constexpr std::size_t kChecksumBytes = 8;

template <class T>
void Append(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

// Takes a number off the front of `in`, which is long enough.
template <class T>
T Take(std::string_view& in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(in[i])} << (8 * i);
  }
  in.remove_prefix(sizeof(T));
  return static_cast<T>(value);
}

std::uint64_t ChecksumOf(std::string_view text) {
  return Checksum(std::as_bytes(std::span(text.data(), text.size())));
}

absl::Status Corrupt(const std::string& what) {
  return absl::DataLossError("the ledger of the epoch is corrupt: " + what);
}

}  // namespace

std::string SerializeLedger(const Ledger& ledger) {
  std::string out;
  out.reserve(kHeaderBytes + ledger.counted.size() / 8 + 1 +
              ledger.unattended.size() * kUnattendedBytes + kChecksumBytes);
  Append(out, kFormatVersion);
  Append(out, ledger.epoch);
  Append(out, static_cast<std::uint8_t>(ledger.closed ? 1 : 0));
  Append(out, ledger.counted_examples);
  Append(out, ledger.retrained_examples);
  Append(out, ledger.earlier_examples);
  Append(out, ledger.writer_slot);
  Append(out, ledger.writer_incarnation);
  Append(out, static_cast<std::uint32_t>(ledger.counted.size()));
  Append(out, static_cast<std::uint32_t>(ledger.unattended.size()));
  std::string bits((ledger.counted.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < ledger.counted.size(); ++i) {
    if (ledger.counted[i]) {
      bits[i / 8] = static_cast<char>(static_cast<std::uint8_t>(bits[i / 8]) | (1u << (i % 8)));
    }
  }
  out += bits;
  for (const UnattendedEpoch& epoch : ledger.unattended) {
    Append(out, epoch.epoch);
    Append(out, epoch.counted);
    Append(out, epoch.left);
    Append(out, epoch.retrained);
  }
  Append(out, ChecksumOf(out));
  return out;
}

absl::StatusOr<Ledger> ParseLedger(std::string_view value) {
  if (value.size() < kHeaderBytes + kChecksumBytes) {
    return Corrupt("expected at least " + std::to_string(kHeaderBytes + kChecksumBytes) +
                   " bytes, found " + std::to_string(value.size()));
  }
  std::string_view in = value;
  if (const auto version = Take<std::uint32_t>(in); version != kFormatVersion) {
    return absl::FailedPreconditionError("the ledger of the epoch has format version " +
                                         std::to_string(version) + ", this program reads version " +
                                         std::to_string(kFormatVersion));
  }
  std::string_view end = value.substr(value.size() - kChecksumBytes);
  if (Take<std::uint64_t>(end) != ChecksumOf(value.substr(0, value.size() - kChecksumBytes))) {
    return Corrupt("its checksum is wrong");
  }
  Ledger ledger;
  ledger.epoch = Take<std::uint64_t>(in);
  ledger.closed = Take<std::uint8_t>(in) != 0;
  ledger.counted_examples = Take<std::uint64_t>(in);
  ledger.retrained_examples = Take<std::uint64_t>(in);
  ledger.earlier_examples = Take<std::uint64_t>(in);
  ledger.writer_slot = Take<std::uint32_t>(in);
  ledger.writer_incarnation = Take<std::uint64_t>(in);
  const auto batches = Take<std::uint32_t>(in);
  const auto unattended = Take<std::uint32_t>(in);
  const std::size_t bitmap_bytes = (std::size_t{batches} + 7) / 8;
  if (unattended > Ledger::kMostUnattended ||
      in.size() - kChecksumBytes != bitmap_bytes + unattended * kUnattendedBytes) {
    return Corrupt("expected a bitmap of " + std::to_string(batches) + " batches and " +
                   std::to_string(unattended) + " unattended epochs, found " +
                   std::to_string(in.size() - kChecksumBytes) + " bytes");
  }
  ledger.counted.resize(batches);
  for (std::size_t i = 0; i < batches; ++i) {
    ledger.counted[i] = ((static_cast<std::uint8_t>(in[i / 8]) >> (i % 8)) & 1) != 0;
  }
  in.remove_prefix(bitmap_bytes);
  for (std::uint32_t i = 0; i < unattended; ++i) {
    UnattendedEpoch& epoch = ledger.unattended.emplace_back();
    epoch.epoch = Take<std::uint64_t>(in);
    epoch.counted = Take<std::uint64_t>(in);
    epoch.left = Take<std::uint64_t>(in);
    epoch.retrained = Take<std::uint64_t>(in);
  }
  return ledger;
}

}  // namespace adamant::data_server
