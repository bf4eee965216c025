#pragma once

#include <cstdint>
#include <functional>

#include "services/common/checkpoint/record.h"

// Small named values that change by compare and swap; part of the replicated value of their bucket.
namespace adamant::parameter_server {

using checkpoint::EraseRecords;
using checkpoint::LoadRecords;
using checkpoint::Record;
using checkpoint::RecordMap;
using checkpoint::StoreRecord;

inline constexpr std::uint64_t kMaxRecordKeyBytes = 256;
inline constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{1} << 20;

/// Readiness of a bucket for use here.
enum class Access { kReady, kNotPrimary, kNotReady };

struct RecordAnswer {
  Access access = Access::kNotReady;
  bool stored = false;  ///< a put: else the version was another
  Record record = {};   ///< a put: only the version, after the call
};

/// Called once, never under a lock.
using RecordDone = std::function<void(const RecordAnswer&)>;

}  // namespace adamant::parameter_server
