#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/core/state/state_store.h"

namespace adamant::storage {
class KvStore;
}  // namespace adamant::storage

namespace adamant::local {

/// A controller's state in a KvStore. The version is an entry of its own, written with the others,
/// and so is who wrote: a write that failed may have been stored nevertheless (its log was written
/// and not synced), and must not be taken for that of another controller.
/// Two of them on one store do not exclude each other between reading and writing the version: the
/// lock on the run's folder does.
/// Threads: one at a time.
class KvStateStore final : public controller::StateStore {
 public:
  /// `writer` names this controller among all that ever use the store; it must be random. `store`
  /// must outlive this.
  KvStateStore(storage::KvStore& store, std::uint64_t writer)
      : store_(store), writer_(std::to_string(writer)) {}

  absl::StatusOr<Snapshot> Load() override;
  absl::Status CompareAndSwap(std::uint64_t version,
                              const std::vector<controller::Persist::Entry>& entries) override;

 private:
  [[nodiscard]] absl::StatusOr<std::uint64_t> Version() const;
  [[nodiscard]] absl::StatusOr<bool> IsOwnUnconfirmedWrite(std::uint64_t stored,
                                                           std::uint64_t version) const;

  storage::KvStore& store_;
  const std::string writer_;
  std::vector<controller::Persist::Entry> unconfirmed_;  // of writes that have failed
};

/// Results of epochs that are stored, in any order. Errors: those of DecodeResult.
absl::StatusOr<std::vector<controller::EpochResult>> StoredResults(
    const controller::StateStore::Snapshot& snapshot);

}  // namespace adamant::local
