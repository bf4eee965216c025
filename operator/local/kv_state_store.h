#pragma once

#include "operator/core/state_store.h"

namespace adamant::storage {
class KvStore;
}  // namespace adamant::storage

namespace adamant::local {

/// A controller's state in a KvStore. The version is an entry of its own, written with the others.
/// Two of them on one store do not exclude each other between reading and writing the version: the
/// lock on the run directory does.
class KvStateStore final : public controller::StateStore {
 public:
  /// `store` must outlive this.
  explicit KvStateStore(storage::KvStore& store) : store_(store) {}

  absl::StatusOr<Snapshot> Load() const override;
  absl::Status CompareAndSwap(std::uint64_t version,
                              const std::vector<controller::Persist::Entry>& entries) override;

 private:
  [[nodiscard]] absl::StatusOr<std::uint64_t> Version() const;

  storage::KvStore& store_;
};

}  // namespace adamant::local
