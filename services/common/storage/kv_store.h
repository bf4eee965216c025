#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::storage {

/// One change of a batch: sets `key` to `value`, or deletes it, or deletes a range of keys.
struct Change {
  std::string key;
  std::string value;
  bool erase = false;
  std::string end = {};  ///< with `erase`: every key from `key` up to this one, which stays, goes
};

/// An ordered map of bytes to bytes that survives the process.
///
/// Three kinds of write differ in what they outlive, and in price:
///   Write        the loss of power            one sync of the disk
///   WriteLogged  the death of the process     one copy into the system's cache
///   WriteLazily  nothing until Flush          memory
/// Each is atomic, and kinds may be mixed on one key: the latest call wins, and what is found after
/// a crash is the latest call that survived it. Of the calls of one kind that were not yet durable
/// the first ones survive: none is missing before one that is there.
/// Threads: all members may be called from any thread.
class KvStore {
 public:
  virtual ~KvStore() = default;

  /// Large values come from the disk itself, past all caches, and every value is checked: so to
  /// read is to scrub. Errors: NotFound when absent; DataLoss when the stored bytes fail their
  /// checksum; Unavailable when the disk does not answer; ResourceExhausted while no more files may
  /// be opened.
  virtual absl::StatusOr<std::string> Get(std::string_view key) const = 0;

  /// Applies all changes or none, and returns when they would survive a loss of power.
  /// Errors: ResourceExhausted when the disk is full or no more files may be opened (the store goes
  /// on serving reads, and writes succeed again once there is room); DataLoss when a sync failed:
  /// what was written since the last success is unknown.
  virtual absl::Status Write(const std::vector<Change>& changes) = 0;

  /// Like Write, but survives only the death of the process, not the loss of power. The next Write
  /// or Flush that succeeds makes it durable.
  virtual absl::Status WriteLogged(const std::vector<Change>& changes) = 0;

  /// Like Write, but may be lost with the process. Flush makes it durable.
  virtual absl::Status WriteLazily(const std::vector<Change>& changes) = 0;

  /// Makes all changes so far durable. Errors: those of Write.
  virtual absl::Status Flush() = 0;

  /// Calls `visit` with every entry whose key starts with `prefix`, in key order, until it returns
  /// false. Errors: those of Get.
  virtual absl::Status Scan(
      std::string_view prefix,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
};

}  // namespace adamant::storage
