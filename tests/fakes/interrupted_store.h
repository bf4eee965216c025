#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"

namespace adamant::fakes {

/// Passes everything on to another store, and calls a function in the middle of a Flush.
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

  absl::StatusOr<std::string> Get(std::string_view key) const override { return store_.Get(key); }
  absl::Status Write(const std::vector<storage::Change>& changes) override {
    return store_.Write(changes);
  }
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override {
    return store_.WriteLogged(changes);
  }
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override {
    return store_.WriteLazily(changes);
  }
  absl::Status Flush() override {
    if (const auto interrupt = TakeInterrupt()) {
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
  std::function<void()> TakeInterrupt() {
    const MutexLock lock(mutex_);
    return std::exchange(interrupt_, nullptr);
  }

  storage::KvStore& store_;
  Mutex mutex_;
  std::function<void()> interrupt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace adamant::fakes
