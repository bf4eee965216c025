#include "services/common/storage/memory_store.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::storage {
namespace {

absl::Status CorruptError() { return absl::DataLossError("memory: checksum mismatch"); }

}  // namespace

absl::StatusOr<std::string> MemoryStore::Get(std::string_view key) const {
  MutexLock lock(mutex_);
  if (corrupt_.contains(key)) {
    return CorruptError();
  }
  const auto found = visible_.find(key);
  if (found == visible_.end()) {
    return absl::NotFoundError("memory: no such key");
  }
  return found->second;
}

absl::Status MemoryStore::Write(const std::vector<Change>& changes) {
  MutexLock lock(mutex_);
  if (absl::Status status = Sync(); !status.ok()) {
    if (absl::IsDataLoss(status)) {
      Show(changes);
    }
    return status;
  }
  Show(changes);
  Apply(changes, durable_);
  DropUnflushed(changes);
  return absl::OkStatus();
}

absl::Status MemoryStore::WriteLazily(const std::vector<Change>& changes) {
  MutexLock lock(mutex_);
  Show(changes);
  unflushed_.push_back(changes);
  return absl::OkStatus();
}

absl::Status MemoryStore::Flush() {
  MutexLock lock(mutex_);
  ADAMANT_RETURN_IF_ERROR(Sync());
  for (const auto& changes : std::exchange(unflushed_, {})) {
    Apply(changes, durable_);
  }
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
  for (std::size_t i = 0; i < std::min(survivors, unflushed_.size()); ++i) {
    Apply(unflushed_[i], durable_);
  }
  unflushed_.clear();
  visible_ = durable_;
}

void MemoryStore::SetFull(bool full) {
  MutexLock lock(mutex_);
  full_ = full;
}

void MemoryStore::FailNextSync() {
  MutexLock lock(mutex_);
  fail_sync_ = true;
}

void MemoryStore::Corrupt(std::string_view key) {
  MutexLock lock(mutex_);
  corrupt_.emplace(key);
}

std::size_t MemoryStore::unflushed() const {
  MutexLock lock(mutex_);
  return unflushed_.size();
}

void MemoryStore::Apply(const std::vector<Change>& changes, Map& map) {
  for (const Change& change : changes) {
    if (change.erase) {
      map.erase(change.key);
    } else {
      map.insert_or_assign(change.key, change.value);
    }
  }
}

absl::Status MemoryStore::Sync() {
  if (full_) {
    return absl::ResourceExhaustedError("memory: no space left");
  }
  if (std::exchange(fail_sync_, false)) {
    return absl::DataLossError("memory: sync failed");
  }
  return absl::OkStatus();
}

void MemoryStore::Show(const std::vector<Change>& changes) {
  Apply(changes, visible_);
  for (const Change& change : changes) {
    corrupt_.erase(change.key);
  }
}

// Otherwise a later flush would put older values over the durable ones.
void MemoryStore::DropUnflushed(const std::vector<Change>& changes) {
  for (const Change& newer : changes) {
    for (auto& older : unflushed_) {
      std::erase_if(older, [&](const Change& change) { return change.key == newer.key; });
    }
  }
}

}  // namespace adamant::storage
