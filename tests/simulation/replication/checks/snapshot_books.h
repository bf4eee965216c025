#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/records.h"
#include "tests/simulation/replication/world/setup.h"

namespace adamant::replication_simulation {

/// What servers have stored as snapshots, as they held it then.
/// Threads: one.
class SnapshotBooks {
 public:
  struct Entry {
    ConfigurationVersion configuration_version = 0;  ///< under which the server was the primary
    std::vector<std::uint64_t> versions;  ///< of the shards: updates applied since their creation
    ps::RecordMap records;
  };

  /// The server holds this, and says that it is stored: since the first time in this configuration.
  void Taken(std::uint64_t snapshot, std::uint32_t slot, BucketId bucket, Entry entry) {
    const auto [known, first] = entries_.try_emplace({snapshot, slot, bucket}, entry);
    if (!first && known->second.configuration_version != entry.configuration_version) {
      known->second = std::move(entry);
    }
  }

  /// nullptr: it has not said that it is stored.
  [[nodiscard]] const Entry* Find(std::uint64_t snapshot,
                                  std::uint32_t slot,
                                  BucketId bucket) const {
    const auto found = entries_.find({snapshot, slot, bucket});
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::tuple<std::uint64_t, std::uint32_t, BucketId>, Entry> entries_;
};

}  // namespace adamant::replication_simulation
