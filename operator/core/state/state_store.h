#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/actions.h"

namespace adamant::controller {

/// Storage of a controller's state that lets at most one controller change it: whoever writes
/// names the version that it has read, and is refused when another has written since. What a
/// controller does follows from what it has stored, so one that is refused must do nothing more.
/// Threads: one.
class StateStore {
 public:
  /// Everything that is stored.
  struct Snapshot {
    std::uint64_t version = 0;  ///< 0: nothing was ever stored
    std::map<std::string, std::string> entries{};
  };

  virtual ~StateStore() = default;

  /// Errors: those of the storage.
  virtual absl::StatusOr<Snapshot> Load() = 0;

  /// Sets these entries, all or none, if the version is still this one; it rises by one.
  /// Errors: Aborted when another has written; those of the storage, after which nothing or all is
  /// stored: the entries are written again, with those of the next call for the same version.
  virtual absl::Status CompareAndSwap(std::uint64_t version,
                                      const std::vector<Persist::Entry>& entries) = 0;
};

}  // namespace adamant::controller
