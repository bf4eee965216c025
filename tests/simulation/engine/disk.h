#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/storage/memory_store.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::simulation {

/// A disk of one process at a time, which outlives it: a store whose log can be cut and damaged.
/// Threads: one.
class Disk : public storage::KvStore {
 public:
  absl::StatusOr<std::string> Get(std::string_view key) const override { return store_->Get(key); }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    return store_->Write(changes);
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return store_->WriteLogged(changes);
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return store_->WriteLazily(changes);
  }
  absl::Status Flush() override { return store_->Flush(); }
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return store_->Scan(prefix, visit);
  }

  storage::MemoryStore& store() { return *store_; }
  [[nodiscard]] const storage::MemoryStore& store() const { return *store_; }

  // --- Processes

  /// A process opens it, and finds what the last one left. Returns why that is nothing, though
  /// there was something; "": it is not so.
  std::string Open();

  /// The process has ended. What it wrote lazily is gone, but for the first `survivors` calls; the
  /// rest is in the system's cache until another opens it or the power is lost.
  void Close(std::size_t survivors);

  /// What is not synced is cut off, but for the first `survivors` calls of each kind. No process
  /// has it open.
  void LosePower(std::size_t survivors);

  void SetFull(bool full);
  void SetLying(bool lying);

  /// A bit flips in the log, before its end: who opens it next moves it aside.
  void DamageLog() { damaged_ = true; }

  /// All snapshots are gone.
  absl::Status LoseSnapshots();

  /// The values of a shard in a snapshot. Errors: NotFound; as DecodeShard and KvStore::Get.
  [[nodiscard]] absl::StatusOr<std::vector<float>> ReadSnapshot(std::uint64_t job_uid,
                                                                std::uint64_t snapshot,
                                                                const Shard& shard);

  bool locked = false;  ///< a process has it open
  Clock::TimePoint full_until{};
  Clock::TimePoint slow_until{};  ///< what waits for it takes up to kSlow more

  static constexpr std::chrono::seconds kSlow{2};

 private:
  std::optional<storage::MemoryStore> store_{std::in_place};
  std::size_t survivors_ = 0;
  bool damaged_ = false;
  bool full_ = false;
  bool lying_ = false;
};

}  // namespace adamant::simulation
