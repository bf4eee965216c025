#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/storage/kv_store.h"

namespace adamant::storage {

/// A KvStore in memory that fails on command: for tests and the simulation.
/// Threads: any.
class MemoryStore final : public KvStore {
 public:
  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Write(const std::vector<Change>& changes) override;
  absl::Status WriteLogged(const std::vector<Change>& changes) override;
  absl::Status WriteLazily(const std::vector<Change>& changes) override;
  absl::Status Flush() override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

  /// Leaves what a new process finds after this one was killed: of the lazy writes not yet durable
  /// only the first `survivors` calls, which a loss of power may still take, as it may logged ones.
  void Crash(std::size_t survivors = 0);

  /// Leaves what a new process finds after a loss of power: of the lazy and of the logged writes
  /// not yet durable only the first `survivors` calls each.
  void LosePower(std::size_t survivors = 0);

  /// While full, all but lazy writes fail with ResourceExhausted and change nothing.
  void SetFull(bool full);

  /// While it is out of files, Get fails with ResourceExhausted.
  void SetOutOfFiles(bool out_of_files);

  /// While it lies, Write and Flush say that they have synced; what they wrote survives the process
  /// alone.
  void SetLying(bool lying);

  /// The next Write or Flush, `after` so many that do not, fails with DataLoss, and what it wrote
  /// does not survive a crash.
  void FailNextSync(std::size_t after = 0);

  /// Reading `key` fails with DataLoss until it is written again.
  void Corrupt(std::string_view key);

  /// As Get, of what a loss of power would leave now.
  [[nodiscard]] absl::StatusOr<std::string> GetDurable(std::string_view key) const;

  /// Lazy and logged writes not yet durable, in calls.
  [[nodiscard]] std::size_t unflushed() const;

 private:
  using Map = std::map<std::string, std::string, std::less<>>;
  enum class Kind { kLazy, kLogged, kDurable };
  struct Call {
    std::vector<Change> changes;
    Kind kind;
  };

  static void Apply(const std::vector<Change>& changes, Map& map);
  absl::Status Sync() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Show(const std::vector<Change>& changes, Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Promote(Kind from, Kind to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeLoggedDurable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(std::size_t lazy_survivors, std::size_t logged_survivors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Guarded.
  mutable Mutex mutex_;
  Map visible_ ABSL_GUARDED_BY(mutex_);
  Map durable_ ABSL_GUARDED_BY(mutex_);             // before the first of calls_
  std::deque<Call> calls_ ABSL_GUARDED_BY(mutex_);  // begins with one that is not durable
  std::set<std::string, std::less<>> corrupt_ ABSL_GUARDED_BY(mutex_);
  bool full_ ABSL_GUARDED_BY(mutex_) = false;
  bool out_of_files_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::size_t> syncs_until_failure_ ABSL_GUARDED_BY(mutex_);
  bool lying_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace adamant::storage
