#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::storage {

/// One change of a batch. A missing value deletes the key.
struct Change {
  std::string key;
  std::string value;
  bool erase = false;
};

/// An ordered map of bytes to bytes that survives the process.
/// Threads: all members may be called from any thread.
class KvStore {
 public:
  virtual ~KvStore() = default;

  /// NotFound when absent; DataLoss when the stored bytes fail their checksum.
  virtual absl::StatusOr<std::string> Get(std::string_view key) const = 0;

  /// Applies all changes or none, and returns when they would survive a loss of power.
  /// Errors: ResourceExhausted when the disk is full (the store goes on serving reads, and writes
  /// succeed again once there is room); DataLoss when a sync failed: what was written since the
  /// last success is unknown.
  virtual absl::Status Write(const std::vector<Change>& changes) = 0;

  /// Like Write, but what was not yet synced may be lost with the process. Flush makes it durable.
  virtual absl::Status WriteLazily(const std::vector<Change>& changes) = 0;

  /// Makes all lazily written changes durable.
  virtual absl::Status Flush() = 0;

  /// Calls `visit` with every entry whose key starts with `prefix`, in key order, until it returns
  /// false.
  virtual absl::Status Scan(
      std::string_view prefix,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
};

}  // namespace adamant::storage
