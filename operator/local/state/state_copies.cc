#include "operator/local/state/state_copies.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "operator/core/state/actions.h"
#include "operator/core/state/state.h"
#include "operator/local/state/kv_state_store.h"
#include "services/common/base/status_macros.h"
#include "services/common/storage/rocksdb/file_check.h"
#include "services/common/storage/rocksdb/rocksdb_store.h"
#include "services/common/storage/rocksdb/set_aside.h"

namespace adamant::local {
namespace {

constexpr std::size_t kCopies = 2;

using controller::StateStore;

absl::StatusOr<StateStore::Snapshot> SnapshotOf(storage::KvStore& store) {
  return KvStateStore(store, 0).Load();
}

// What is wrong, without advice that does not fit here: a run does not begin without its state.
std::string Fault(const absl::Status& status) {
  std::string text(status.message());
  if (text.ends_with(storage::kDamageAdvice)) {
    text.resize(text.size() - storage::kDamageAdvice.size());
  }
  return text;
}

absl::Status BothDamaged(const absl::Status& first,
                         const absl::Status& second,
                         const StateCopies::Folders& folders) {
  return absl::DataLossError(Fault(first) + "; and of the other copy: " + Fault(second) +
                             ". Check the disk; " +
                             WithoutState(RunPaths(folders[0].parent_path())));
}

// RocksDB tells it by its text alone.
bool IsLocked(const absl::Status& status) {
  return status.message().find("While lock file") != std::string_view::npos &&
         status.message().find("temporarily unavailable") != std::string_view::npos;
}

// The first one is written first: it is as late as the second, or one change ahead. Else this says
// which lacks more; "" where the second one is there not at all.
std::string Behind(const std::array<std::uint64_t, kCopies>& versions,
                   const StateCopies::Folders& folders) {
  const std::size_t behind = versions[0] < versions[1] ? 0 : 1;
  const bool is_usual = behind == 1 && (versions[1] == 0 || versions[0] - versions[1] <= 1);
  return is_usual
             ? ""
             : folders[behind].string() + ": has only version " + std::to_string(versions[behind]) +
                   " of the controller's state, and " + folders[1 - behind].string() + " has " +
                   std::to_string(versions[1 - behind]) + ": it has lost changes";
}

// The job whose state it is; 0: not known.
std::uint64_t JobOf(const StateStore::Snapshot& snapshot) {
  const auto entry = snapshot.entries.find(controller::kStateKey);
  if (entry == snapshot.entries.end()) {
    return 0;
  }
  const absl::StatusOr<controller::JobState> state = controller::DecodeState(entry->second);
  return state.ok() ? state->job_uid : 0;
}

absl::Status CheckOneJob(const std::array<std::uint64_t, kCopies>& jobs,
                         const StateCopies::Folders& folders) {
  if (jobs[0] == 0 || jobs[1] == 0 || jobs[0] == jobs[1]) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      folders[0].string() + " and " + folders[1].string() +
      " are the states of two jobs: one of them comes from another run. Move that one away, and "
      "the run goes on with the other");
}

}  // namespace

std::string WithoutState(const RunPaths& paths) {
  return "restore one of both as it was when the run stopped last (an older one does not fit what "
         "the servers have stored since): without them the run cannot go on. What is left: adamant "
         "export " +
         paths.root.string() +
         " writes the model of its newest checkpoint, and a new run begins anew";
}

absl::Status CheckNotBegun(const RunPaths& paths) {
  std::error_code error;
  return std::filesystem::is_empty(paths.data(), error)
             ? absl::OkStatus()
             : absl::DataLossError("the controller's state is missing from " +
                                   paths.controller().string() + " and " +
                                   paths.controller_copy().string() +
                                   " although the run had begun; " + WithoutState(paths));
}

absl::StatusOr<std::unique_ptr<StateCopies>> StateCopies::Open(const Folders& folders) {
  return Open(folders, [](const std::filesystem::path& folder) {
    return storage::RocksDbStore::Open(folder);
  });
}

absl::StatusOr<std::unique_ptr<StateCopies>> StateCopies::Open(const Folders& folders,
                                                               const Opener& opener) {
  std::unique_ptr<StateCopies> copies(new StateCopies(folders, opener));
  std::array<absl::Status, kCopies> opened;
  for (std::size_t i = 0; i < kCopies; ++i) {
    auto store = opener(folders[i]);
    opened[i] = store.status();
    if (store.ok()) {
      copies->stores_[i] = *std::move(store);
      copies->has_folder_[i] = std::filesystem::exists(folders[i]);
    } else if (IsLocked(opened[i])) {
      return InUse(RunPaths(folders[0].parent_path()));
    } else if (!absl::IsDataLoss(opened[i])) {
      return opened[i];
    }
  }
  ADAMANT_RETURN_IF_ERROR(copies->Reconcile(opened));
  return copies;
}

absl::StatusOr<StateCopies::Stored> StateCopies::Read(const Folders& folders) {
  Stored latest;
  absl::Status problem;  // the first
  std::size_t damaged = 0;
  std::array<std::uint64_t, kCopies> versions{};
  std::array<std::uint64_t, kCopies> jobs{};
  for (std::size_t i = 0; i < kCopies; ++i) {
    const auto store = storage::RocksDbStore::OpenToRead(folders[i]);
    auto snapshot = store.ok() ? SnapshotOf(**store) : store.status();
    if (absl::IsDataLoss(snapshot.status()) && ++damaged == kCopies) {
      return BothDamaged(problem, snapshot.status(), folders);
    }
    problem.Update(snapshot.status());
    versions[i] = snapshot.ok() ? snapshot->version : 0;
    jobs[i] = snapshot.ok() ? JobOf(*snapshot) : 0;
    if (snapshot.ok() && versions[i] >= latest.snapshot.version) {
      latest.snapshot = *std::move(snapshot);
    }
  }
  if (latest.snapshot.version == 0 && !problem.ok()) {
    return problem;
  }
  ADAMANT_RETURN_IF_ERROR(CheckOneJob(jobs, folders));
  if (absl::IsDataLoss(problem)) {  // a run of an earlier version has no second one
    latest.damage = std::string(problem.message());
  } else if (const std::string lost = problem.ok() ? Behind(versions, folders) : "";
             !lost.empty()) {
    latest.damage = lost + ". Check the disk";
  }
  return latest;
}

StateCopies::StateCopies(const Folders& folders, const Opener& opener)
    : folders_(folders), opener_(opener) {}

absl::Status StateCopies::Reconcile(const std::array<absl::Status, kCopies>& opened) {
  std::array<absl::Status, kCopies> readable = opened;
  std::array<std::uint64_t, kCopies> versions{};
  std::array<std::uint64_t, kCopies> jobs{};
  for (std::size_t i = 0; i < kCopies; ++i) {
    if (readable[i].ok()) {
      const auto snapshot = SnapshotOf(*stores_[i]);
      readable[i] = snapshot.status();
      versions[i] = snapshot.ok() ? snapshot->version : 0;
      jobs[i] = snapshot.ok() ? JobOf(*snapshot) : 0;
    }
  }
  if (!readable[0].ok() && !readable[1].ok()) {
    return BothDamaged(readable[0], readable[1], folders_);
  }
  for (std::size_t i = 0; i < kCopies; ++i) {
    if (!readable[i].ok()) {
      const std::string other = folders_[1 - i].string();
      return !absl::IsDataLoss(readable[i]) ? readable[i]
             : versions[1 - i] > 0
                 ? Renew(i, std::string(readable[i].message()))
                 : BothDamaged(absl::DataLossError(other + ": it is gone, or empty"),
                               readable[i],
                               folders_);
    }
  }
  ADAMANT_RETURN_IF_ERROR(CheckOneJob(jobs, folders_));
  if (versions[0] == versions[1]) {
    return absl::OkStatus();
  }
  const std::size_t behind = versions[0] < versions[1] ? 0 : 1;
  if (const std::string lost = Behind(versions, folders_); !lost.empty()) {
    alarms_.push_back(lost + ", and got them anew. Check the disk");
  }
  return Fill(behind);
}

absl::Status StateCopies::Renew(std::size_t copy, const std::string& damage) {
  ADAMANT_RETURN_IF_ERROR(MakeAnew(copy));
  alarms_.push_back("the controller's state is damaged, and was made anew from " +
                    folders_[1 - copy].string() + "; what is damaged is kept as " +
                    folders_[copy].string() + ".damaged: " + damage);
  return absl::OkStatus();
}

// A link that leads nowhere goes aside, too.
absl::Status StateCopies::MakeAnew(std::size_t copy) {
  stores_[copy].reset();
  if (std::error_code error;
      std::filesystem::exists(std::filesystem::symlink_status(folders_[copy], error))) {
    ADAMANT_RETURN_IF_ERROR(storage::SetAside(folders_[copy]));
  }
  ADAMANT_ASSIGN_OR_RETURN(stores_[copy], opener_(folders_[copy]));
  has_folder_[copy] = std::filesystem::exists(folders_[copy]);
  return Fill(copy);
}

// An open store writes on into files that nobody will find again.
absl::Status StateCopies::BringBack(std::size_t copy) {
  std::error_code error;
  if (!has_folder_[copy] || stores_[1 - copy] == nullptr ||
      std::filesystem::exists(folders_[copy], error)) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(MakeAnew(copy));
  alarms_.push_back(folders_[copy].string() +
                    " was removed while the job runs, with the controller's state in it: it was "
                    "made anew from " +
                    folders_[1 - copy].string());
  return absl::OkStatus();
}

// No key is ever erased, so what is there need not go.
absl::Status StateCopies::Fill(std::size_t copy) {
  std::vector<storage::Change> all;
  ADAMANT_RETURN_IF_ERROR(
      stores_[1 - copy]->Scan("", [&](std::string_view key, std::string_view value) {
        all.push_back({.key = std::string(key), .value = std::string(value)});
        return true;
      }));
  return stores_[copy]->Write(all);
}

absl::StatusOr<std::string> StateCopies::Get(std::string_view key) const {
  absl::StatusOr<std::string> value = absl::UnavailableError(folders_[0].string() + ": not open");
  for (const auto& store : stores_) {
    if (store != nullptr) {
      value = store->Get(key);
      if (!absl::IsDataLoss(value.status())) {
        return value;
      }
    }
  }
  return value;
}

absl::Status StateCopies::Write(const std::vector<storage::Change>& changes) {
  ADAMANT_RETURN_IF_ERROR(WriteTo(0, changes));
  return WriteTo(1, changes);
}

// Each is synced, as all that a controller stores is.
absl::Status StateCopies::WriteLogged(const std::vector<storage::Change>& changes) {
  return Write(changes);
}

absl::Status StateCopies::WriteLazily(const std::vector<storage::Change>& changes) {
  return Write(changes);
}

absl::Status StateCopies::Flush() { return absl::OkStatus(); }

absl::Status StateCopies::Scan(
    std::string_view prefix,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) const {
  return stores_[0] != nullptr ? stores_[0]->Scan(prefix, visit) : stores_[1]->Scan(prefix, visit);
}

// One that the disk fails is made anew from the other, once: that it fails again is told.
absl::Status StateCopies::WriteTo(std::size_t copy, const std::vector<storage::Change>& changes) {
  ADAMANT_RETURN_IF_ERROR(BringBack(copy));
  const absl::Status written = stores_[copy] == nullptr
                                   ? absl::DataLossError(folders_[copy].string() + ": not open")
                                   : stores_[copy]->Write(changes);
  if (!absl::IsDataLoss(written) || stores_[1 - copy] == nullptr) {
    return written;
  }
  ADAMANT_RETURN_IF_ERROR(Renew(copy, std::string(written.message())));
  return stores_[copy]->Write(changes);
}

std::vector<std::string> StateCopies::TakeAlarms() { return std::exchange(alarms_, {}); }

}  // namespace adamant::local
