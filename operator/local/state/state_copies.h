#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/state_store.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/storage/kv_store.h"

namespace adamant::local {

/// Returns what a person can do where a run has lost its controller's state, with both copies.
std::string WithoutState(const RunPaths& paths);

/// Checks that a run of whose state nothing is there has not begun, as far as its folder tells:
/// processes are started, and store something, only after the state is. Error: DataLoss, saying
/// what a person can do.
absl::Status CheckNotBegun(const RunPaths& paths);

/// State that a KvStateStore keeps, in two stores with a folder each: no one damaged file loses it.
/// A change is written to one after the other, so they differ by the last one at most.
///
/// A store that is damaged is set aside (storage::SetAside) and made anew from the other, and an
/// alarm tells of it: when they are opened, and when a write finds it. So is one whose folder was
/// removed.
/// Threads: one.
class StateCopies final : public storage::KvStore {
 public:
  using Folders = std::array<std::filesystem::path, 2>;
  using Opener = std::function<absl::StatusOr<std::unique_ptr<storage::KvStore>>(
      const std::filesystem::path& folder)>;

  /// Opens or creates both; the second may have been missing so far. The state is the later one of
  /// those that are whole. Errors: those of RocksDbStore::Open; DataLoss when no other copy can
  /// stand in for the damaged one, with nothing set aside; FailedPrecondition when they are of two
  /// jobs.
  static absl::StatusOr<std::unique_ptr<StateCopies>> Open(const Folders& folders);
  static absl::StatusOr<std::unique_ptr<StateCopies>> Open(const Folders& folders,
                                                           const Opener& opener);

  struct Stored {
    controller::StateStore::Snapshot snapshot;
    std::string damage = {};  ///< of the other one
  };

  /// The state that Open would take; reads only. Errors: those of Open.
  static absl::StatusOr<Stored> Read(const Folders& folders);

  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Write(const std::vector<storage::Change>& changes) override;
  absl::Status WriteLogged(const std::vector<storage::Change>& changes) override;
  absl::Status WriteLazily(const std::vector<storage::Change>& changes) override;
  absl::Status Flush() override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

  /// Returns what was damaged and made anew since the last call.
  std::vector<std::string> TakeAlarms();

 private:
  StateCopies(const Folders& folders, const Opener& opener);

  absl::Status Reconcile(const std::array<absl::Status, 2>& opened);
  absl::Status Renew(std::size_t copy, const std::string& damage);
  absl::Status MakeAnew(std::size_t copy);
  absl::Status BringBack(std::size_t copy);
  absl::Status Fill(std::size_t copy);
  absl::Status WriteTo(std::size_t copy, const std::vector<storage::Change>& changes);

  // Constant after construction.
  const Folders folders_;
  const Opener opener_;

  std::array<std::unique_ptr<storage::KvStore>, 2> stores_;  // null: could not be made anew
  std::array<bool, 2> has_folder_{};                         // as it was opened
  std::vector<std::string> alarms_;
};

}  // namespace adamant::local
