#pragma once

#include <cstdint>
#include <string_view>

namespace adamant::storage {

/// Part of a log file of RocksDB that can be read.
struct LogScan {
  std::uint64_t whole = 0;  ///< bytes before the first record that is damaged or cut; or all
  bool goes_on = false;     ///< a write can be read after that: no cut end, but damage
  bool has_writes = false;  ///< that change anything
};

/// Reads a log file as RocksDB's recovery does, without the library, which says of damage only that
/// the log ends there. Of several records that a write takes, the first counts as the write.
/// Source: rocksdb/db/log_format.h. Neither recycled nor compressed logs.
LogScan ScanLog(std::string_view bytes);

}  // namespace adamant::storage
