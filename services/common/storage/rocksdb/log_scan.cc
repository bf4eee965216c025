#include "services/common/storage/rocksdb/log_scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace adamant::storage {
namespace {

// Records do not cross the borders of blocks: a write takes one record, or a first, some in the
// middle and a last. What is left of a block has no room for a header.
constexpr std::uint64_t kBlock = 32768;
constexpr std::uint64_t kHeader = 7;  // masked CRC-32C, length, type
constexpr std::uint8_t kFull = 1;
constexpr std::uint8_t kFirst = 2;
constexpr std::uint8_t kLast = 4;
// Of the batch that a write consists of: its first sequence number, and how many changes it makes.
constexpr std::uint64_t kBatchCount = 8;
constexpr std::uint64_t kBatchHeader = 12;

struct LogRecord {
  std::uint8_t type = 0;
  std::string_view payload;
};

constexpr std::array<std::uint32_t, 256> CrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) {
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0x82f63b78 : 0);
    }
  }
  return table;
}

std::uint32_t MaskedCrc(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = CrcTable();
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff];
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

template <class T>
T Number(std::string_view bytes, std::uint64_t at) {
  T number{};
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

std::uint64_t LeftOfBlock(std::uint64_t at) { return kBlock - at % kBlock; }

// The record that begins there; nullopt if there is none.
std::optional<LogRecord> ReadRecord(std::string_view bytes, std::uint64_t at) {
  if (bytes.size() - at < kHeader || LeftOfBlock(at) < kHeader) {
    return std::nullopt;
  }
  const auto length = Number<std::uint16_t>(bytes, at + 4);
  const auto type = Number<std::uint8_t>(bytes, at + 6);
  const std::uint64_t room = std::min<std::uint64_t>(bytes.size() - at, LeftOfBlock(at));
  if (type < kFull || type > kLast || kHeader + length > room ||
      MaskedCrc(bytes.substr(at + 6, 1 + length)) != Number<std::uint32_t>(bytes, at)) {
    return std::nullopt;
  }
  return LogRecord{.type = type, .payload = bytes.substr(at + kHeader, length)};
}

bool BeginsWrite(const LogRecord& record) { return record.type == kFull || record.type == kFirst; }

bool ChangesAnything(const LogRecord& record) {
  return BeginsWrite(record) && (record.payload.size() < kBatchHeader ||
                                 Number<std::uint32_t>(record.payload, kBatchCount) > 0);
}

// A length may be damaged, too, so whatever could be a header is looked at.
bool GoesOnAfter(std::string_view bytes, std::uint64_t damage) {
  for (std::uint64_t at = damage + 1; at < bytes.size(); ++at) {
    const std::optional<LogRecord> record = ReadRecord(bytes, at);
    if (record.has_value() && BeginsWrite(*record)) {
      return true;
    }
  }
  return false;
}

}  // namespace

LogScan ScanLog(std::string_view bytes) {
  LogScan scan;
  std::uint64_t at = 0;
  while (at < bytes.size()) {
    if (LeftOfBlock(at) < kHeader) {
      at += LeftOfBlock(at);
      continue;
    }
    const std::optional<LogRecord> record = ReadRecord(bytes, at);
    if (!record.has_value()) {
      break;
    }
    scan.has_writes = scan.has_writes || ChangesAnything(*record);
    at += kHeader + record->payload.size();
    if (record->type == kFull || record->type == kLast) {
      scan.whole = at;
    }
  }
  scan.goes_on = at < bytes.size() && GoesOnAfter(bytes, at);
  return scan;
}

}  // namespace adamant::storage
