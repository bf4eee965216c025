#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/storage/memory_store.h"
#include "tests/simulation/setup.h"

namespace adamant::simulation {

/// A disk of one process at a time, which outlives it. A lying one says that it has synced, and has
/// not.
/// Threads: one.
class Disk final : public storage::KvStore {
 public:
  explicit Disk(bool lies) : lies_(lies) {}

  absl::StatusOr<std::string> Get(std::string_view key) const override { return store_.Get(key); }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    return lies_ ? store_.WriteLazily(changes) : store_.Write(changes);
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return store_.WriteLogged(changes);
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return store_.WriteLazily(changes);
  }
  absl::Status Flush() override { return lies_ ? absl::OkStatus() : store_.Flush(); }
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return store_.Scan(prefix, visit);
  }

  storage::MemoryStore& store() { return store_; }

  /// All snapshots are gone.
  absl::Status LoseSnapshots();

  /// The values of a live shard, as stored. Errors: as DecodeShard and KvStore::Get.
  [[nodiscard]] absl::StatusOr<std::vector<float>> ReadShard(std::uint64_t job_uid,
                                                             ShardId shard) const;

  /// The values of a shard in a snapshot. Errors: NotFound; as DecodeShard and KvStore::Get.
  [[nodiscard]] absl::StatusOr<std::vector<float>> ReadSnapshot(std::uint64_t job_uid,
                                                                std::uint64_t snapshot,
                                                                const Shard& shard);

  bool locked = false;  ///< a process has it open
  Clock::TimePoint full_until{};

 private:
  const bool lies_;
  storage::MemoryStore store_;
};

}  // namespace adamant::simulation
