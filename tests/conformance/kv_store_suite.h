#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "services/common/storage/kv_store.h"

namespace adamant::conformance {

/// A store under test.
class KvStoreRig {
 public:
  virtual ~KvStoreRig() = default;

  virtual storage::KvStore& store() = 0;

  /// Whether lazy writes are treated as logged ones.
  [[nodiscard]] virtual bool LogsLazyWrites() const { return false; }

  /// Replaces the store by what a new process finds after this one was killed.
  virtual void Crash() = 0;

  /// Replaces the store by what a new process finds after a loss of power in the worst case:
  /// nothing is left of what was not synced.
  virtual void LosePower() = 0;

  /// Makes the disk full, or no longer.
  virtual void SetFull(bool full) = 0;

  /// The next sync fails.
  virtual void FailNextSync() = 0;

  /// Damages the stored value of `key`, which was flushed.
  virtual void Corrupt(const std::string& key) = 0;
};

struct KvStoreRigFactory {
  std::string name;
  std::function<std::unique_ptr<KvStoreRig>()> make;
};

/// What every KvStore must do. Instantiate it with a factory:
///   INSTANTIATE_TEST_SUITE_P(Memory, KvStoreSuite, testing::Values(factory));
class KvStoreSuite : public testing::TestWithParam<KvStoreRigFactory> {
 protected:
  void SetUp() override { rig_ = GetParam().make(); }

  storage::KvStore& store() { return rig_->store(); }

  std::unique_ptr<KvStoreRig> rig_;
};

inline void PrintTo(const KvStoreRigFactory& factory, std::ostream* out) { *out << factory.name; }

}  // namespace adamant::conformance
