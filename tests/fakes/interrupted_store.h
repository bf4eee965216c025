#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"

namespace adamant::fakes {

/// Passes everything on to another store, calls a function in the middle of a Flush, keeps the
/// ranges that were to be erased, and counts the calls that sync a disk.
/// Threads: any.
class InterruptedStore final : public storage::KvStore {
 public:
  /// `store` must outlive this.
  explicit InterruptedStore(storage::KvStore& store) : store_(store) {}

  /// The next Flush calls `interrupt` on its own thread, and then goes on.
  void InterruptNextFlush(std::function<void()> interrupt) {
    const MutexLock lock(mutex_);
    interrupt_ = std::move(interrupt);
  }

  /// By Write, since the last call.
  std::vector<storage::Change> TakeErasedRanges() {
    const MutexLock lock(mutex_);
    return std::exchange(erased_, {});
  }

  /// Writes and flushes since the last call.
  int TakeSyncs() {
    const MutexLock lock(mutex_);
    return std::exchange(syncs_, 0);
  }

  absl::StatusOr<std::string> Get(std::string_view key) const override { return store_.Get(key); }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    {
      const MutexLock lock(mutex_);
      ++syncs_;
      std::ranges::copy_if(changes, std::back_inserter(erased_), [](const storage::Change& change) {
        return change.erase && !change.end.empty();
      });
    }
    return store_.Write(changes);
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return store_.WriteLogged(changes);
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return store_.WriteLazily(changes);
  }
  absl::Status Flush() override {
    if (const auto interrupt = BeginFlush()) {
      interrupt();
    }
    return store_.Flush();
  }
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return store_.Scan(prefix, visit);
  }

 private:
  std::function<void()> BeginFlush() {
    const MutexLock lock(mutex_);
    ++syncs_;
    return std::exchange(interrupt_, nullptr);
  }

  storage::KvStore& store_;
  Mutex mutex_;
  std::function<void()> interrupt_ ABSL_GUARDED_BY(mutex_);
  std::vector<storage::Change> erased_ ABSL_GUARDED_BY(mutex_);
  int syncs_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace adamant::fakes
