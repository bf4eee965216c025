#include "services/common/checkpoint/shard_record.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"

namespace adamant::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

constexpr std::uint32_t kFormatVersion = 2;

/// The fixed part, as it lies in the record.
struct Header {
  std::uint32_t format_version;
  ShardId shard;
  std::uint64_t job_uid;
  std::uint64_t generation;
  std::uint64_t lsn;
  std::uint64_t version;
  std::uint64_t sequences;
  std::uint64_t values;
  std::uint64_t state;
};
static_assert(sizeof(Header) == 64);

struct StoredSequence {
  std::uint64_t slot;
  Incarnation incarnation;
  Sequence sequence;
};
static_assert(sizeof(StoredSequence) == 24);

template <class T>
void Append(std::string& record, const T& value) {
  record.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void Append(std::string& record, std::span<const float> values) {
  record.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

std::string Name(ShardId shard) { return "stored shard " + std::to_string(shard); }

/// The header of a record of the right format, job, shard and length.
absl::StatusOr<Header> CheckedHeader(const ShardIdentity& identity, std::string_view record) {
  Header header{};
  std::memcpy(&header, record.data(), std::min(record.size(), sizeof(header)));
  if (record.size() >= sizeof(header.format_version) && header.format_version != kFormatVersion) {
    return absl::FailedPreconditionError(
        Name(identity.shard) + " has format version " + std::to_string(header.format_version) +
        ", this program reads version " + std::to_string(kFormatVersion));
  }
  std::uint64_t stored = 0;
  if (record.size() < sizeof(header) + sizeof(stored)) {
    return absl::DataLossError(Name(identity.shard) + " is cut off after " +
                               std::to_string(record.size()) + " bytes");
  }
  const std::string_view body = record.substr(0, record.size() - sizeof(stored));
  std::memcpy(&stored, body.end(), sizeof(stored));
  if (stored != Checksum(std::as_bytes(std::span(body)))) {
    return absl::DataLossError(Name(identity.shard) + " fails its checksum");
  }
  if (header.job_uid != identity.job_uid) {
    return absl::FailedPreconditionError(
        Name(identity.shard) + " belongs to job " + std::to_string(header.job_uid) + ", not to " +
        std::to_string(identity.job_uid) + ": give every job its own data folder");
  }
  const std::uint64_t fixed =
      sizeof(header) + (identity.values + identity.state) * sizeof(float) + sizeof(stored);
  if (header.shard != identity.shard || header.values != identity.values ||
      header.state != identity.state || record.size() < fixed ||
      (record.size() - fixed) % sizeof(StoredSequence) != 0 ||
      (record.size() - fixed) / sizeof(StoredSequence) != header.sequences) {
    const auto sizes = [](std::uint64_t values, std::uint64_t state) {
      return std::to_string(values) + " values and " + std::to_string(state) +
             " of its optimiser's state";
    };
    return absl::DataLossError(
        Name(identity.shard) + " does not have the sizes of the model and its optimiser: " +
        sizes(header.values, header.state) + ", not " + sizes(identity.values, identity.state));
  }
  return header;
}

}  // namespace

std::string EncodeShard(const ShardIdentity& identity, const ShardContent& content) {
  const auto sequences = content.sequences.entries();
  std::string record;
  record.reserve(sizeof(Header) + sequences.size() * sizeof(StoredSequence) +
                 (content.values.size() + content.state.size()) * sizeof(float) +
                 sizeof(std::uint64_t));
  Append(record,
         Header{.format_version = kFormatVersion,
                .shard = identity.shard,
                .job_uid = identity.job_uid,
                .generation = content.generation,
                .lsn = content.lsn,
                .version = content.version,
                .sequences = sequences.size(),
                .values = content.values.size(),
                .state = content.state.size()});
  for (const SequenceTable::Entry& entry : sequences) {
    Append(record, StoredSequence{entry.slot, entry.incarnation, entry.sequence});
  }
  Append(record, std::span<const float>(content.values));
  Append(record, std::span<const float>(content.state));
  return record;
}

void SealShard(std::string& record) { Append(record, Checksum(std::as_bytes(std::span(record)))); }

absl::StatusOr<ShardRecord> DecodeShard(const ShardIdentity& identity, std::string_view record) {
  const auto header = CheckedHeader(identity, record);
  if (!header.ok()) {
    return header.status();
  }
  const char* next = record.data() + sizeof(Header);
  std::vector<SequenceTable::Entry> entries;
  for (std::uint64_t i = 0; i < header->sequences; ++i) {
    StoredSequence entry{};
    std::memcpy(&entry, next, sizeof(entry));
    next += sizeof(entry);
    if (entry.slot > std::numeric_limits<std::uint32_t>::max() ||
        (!entries.empty() && entry.slot <= entries.back().slot)) {
      return absl::DataLossError(Name(identity.shard) + " has sequences of the slot " +
                                 std::to_string(entry.slot) + " where no such slot can be");
    }
    entries.push_back({static_cast<std::uint32_t>(entry.slot), entry.incarnation, entry.sequence});
  }
  const auto* floats = reinterpret_cast<const float*>(next);
  return ShardRecord{.generation = header->generation,
                     .lsn = header->lsn,
                     .version = header->version,
                     .sequences = SequenceTable(std::move(entries)),
                     .values = {floats, header->values},
                     .state = {floats + header->values, header->state}};
}

absl::StatusOr<ShardContent> DecodeContent(const ShardIdentity& identity, std::string_view record) {
  ADAMANT_ASSIGN_OR_RETURN(ShardRecord decoded, DecodeShard(identity, record));
  return ShardContent{.generation = decoded.generation,
                      .lsn = decoded.lsn,
                      .version = decoded.version,
                      .sequences = std::move(decoded.sequences),
                      .values = {decoded.values.begin(), decoded.values.end()},
                      .state = {decoded.state.begin(), decoded.state.end()}};
}

std::string LiveShardKey(ShardId shard) {
  char key[32];
  std::snprintf(key, sizeof(key), "shard/%08x", shard.value());
  return key;
}

}  // namespace adamant::checkpoint
