#include "services/common/storage/memory_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::storage {
namespace {

absl::Status FullError() { return absl::ResourceExhaustedError("memory: no space left"); }

absl::Status CorruptError() { return absl::DataLossError("memory: checksum mismatch"); }

absl::Status MissingError() { return absl::NotFoundError("memory: no such key"); }

bool Touches(const Change& change, std::string_view key) {
  return change.end.empty() ? change.key == key : change.key <= key && key < change.end;
}

// The last change of the batch to this key; nullptr: none.
const Change* FindChange(const std::vector<Change>& changes, std::string_view key) {
  const auto found = std::find_if(
      changes.rbegin(), changes.rend(), [&](const Change& change) { return Touches(change, key); });
  return found == changes.rend() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<std::string> MemoryStore::Get(std::string_view key) const {
  MutexLock lock(mutex_);
  if (out_of_files_) {
    return absl::ResourceExhaustedError("memory: too many open files");
  }
  if (corrupt_.contains(key)) {
    return CorruptError();
  }
  const auto found = visible_.find(key);
  if (found == visible_.end()) {
    return MissingError();
  }
  return found->second;
}

absl::StatusOr<std::string> MemoryStore::GetDurable(std::string_view key) const {
  MutexLock lock(mutex_);
  if (corrupt_.contains(key)) {
    return CorruptError();
  }
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const Change* const change =
        call->kind == Kind::kDurable ? FindChange(call->changes, key) : nullptr;
    if (change != nullptr) {
      return change->erase ? absl::StatusOr<std::string>(MissingError()) : change->value;
    }
  }
  const auto found = durable_.find(key);
  return found == durable_.end() ? absl::StatusOr<std::string>(MissingError()) : found->second;
}

absl::Status MemoryStore::Write(const std::vector<Change>& changes) {
  MutexLock lock(mutex_);
  if (absl::Status status = Sync(); !status.ok()) {
    if (absl::IsDataLoss(status)) {
      Show(changes, Kind::kLazy);
    }
    return status;
  }
  Show(changes, Kind::kLogged);
  MakeLoggedDurable();
  return absl::OkStatus();
}

absl::Status MemoryStore::WriteLogged(const std::vector<Change>& changes) {
  MutexLock lock(mutex_);
  if (full_) {
    return FullError();
  }
  Show(changes, Kind::kLogged);
  return absl::OkStatus();
}

absl::Status MemoryStore::WriteLazily(const std::vector<Change>& changes) {
  MutexLock lock(mutex_);
  Show(changes, Kind::kLazy);
  return absl::OkStatus();
}

absl::Status MemoryStore::Flush() {
  MutexLock lock(mutex_);
  ADAMANT_RETURN_IF_ERROR(Sync());
  Promote(Kind::kLazy, Kind::kLogged);
  MakeLoggedDurable();
  return absl::OkStatus();
}

absl::Status MemoryStore::Scan(
    std::string_view prefix,
    const std::function<bool(std::string_view key, std::string_view value)>& visit) const {
  Map entries;  // `visit` may call back
  std::set<std::string, std::less<>> corrupt;
  {
    MutexLock lock(mutex_);
    for (auto at = visible_.lower_bound(prefix);
         at != visible_.end() && at->first.starts_with(prefix);
         ++at) {
      entries.insert(*at);
    }
    corrupt = corrupt_;
  }
  for (const auto& [key, value] : entries) {
    if (corrupt.contains(key)) {
      return CorruptError();
    }
    if (!visit(key, value)) {
      break;
    }
  }
  return absl::OkStatus();
}

void MemoryStore::Crash(std::size_t survivors) {
  MutexLock lock(mutex_);
  Lose(survivors, calls_.size());
}

void MemoryStore::LosePower(std::size_t survivors) {
  MutexLock lock(mutex_);
  Lose(survivors, survivors);
  Promote(Kind::kLogged, Kind::kDurable);
}

void MemoryStore::SetFull(bool full) {
  MutexLock lock(mutex_);
  full_ = full;
}

void MemoryStore::SetOutOfFiles(bool out_of_files) {
  MutexLock lock(mutex_);
  out_of_files_ = out_of_files;
}

void MemoryStore::SetLying(bool lying) {
  MutexLock lock(mutex_);
  lying_ = lying;
}

void MemoryStore::FailNextSync(std::size_t after) {
  MutexLock lock(mutex_);
  syncs_until_failure_ = after;
}

void MemoryStore::Corrupt(std::string_view key) {
  MutexLock lock(mutex_);
  corrupt_.emplace(key);
}

std::size_t MemoryStore::unflushed() const {
  MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(
      calls_.begin(), calls_.end(), [](const Call& call) { return call.kind != Kind::kDurable; }));
}

void MemoryStore::Apply(const std::vector<Change>& changes, Map& map) {
  for (const Change& change : changes) {
    if (!change.erase) {
      map.insert_or_assign(change.key, change.value);
    } else if (change.end.empty()) {
      map.erase(change.key);
    } else if (change.key < change.end) {
      map.erase(map.lower_bound(change.key), map.lower_bound(change.end));
    }
  }
}

absl::Status MemoryStore::Sync() {
  if (full_) {
    return FullError();
  }
  if (syncs_until_failure_.has_value() && (*syncs_until_failure_)-- == 0) {
    syncs_until_failure_.reset();
    return absl::DataLossError("memory: sync failed");
  }
  return absl::OkStatus();
}

void MemoryStore::Show(const std::vector<Change>& changes, Kind kind) {
  Apply(changes, visible_);
  for (auto key = corrupt_.begin(); key != corrupt_.end();) {
    key = visible_.contains(*key) ? std::next(key) : corrupt_.erase(key);
  }
  for (const Change& change : changes) {
    corrupt_.erase(change.key);
  }
  calls_.push_back({changes, kind});
}

void MemoryStore::Promote(Kind from, Kind to) {
  for (Call& call : calls_) {
    if (call.kind == from) {
      call.kind = to;
    }
  }
  while (!calls_.empty() && calls_.front().kind == Kind::kDurable) {
    Apply(calls_.front().changes, durable_);
    calls_.pop_front();
  }
}

void MemoryStore::MakeLoggedDurable() {
  if (!lying_) {
    Promote(Kind::kLogged, Kind::kDurable);
  }
}

// What is left is no longer in the process, but may still be in the system's cache alone.
void MemoryStore::Lose(std::size_t lazy_survivors, std::size_t logged_survivors) {
  visible_ = durable_;
  for (Call& call : std::exchange(calls_, {})) {
    std::size_t& left = call.kind == Kind::kLazy ? lazy_survivors : logged_survivors;
    if (call.kind != Kind::kDurable && left == 0) {
      continue;
    }
    left -= call.kind == Kind::kDurable ? 0 : 1;
    Apply(call.changes, visible_);
    calls_.push_back(std::move(call));
  }
  Promote(Kind::kLazy, Kind::kLogged);
}

}  // namespace adamant::storage
