#include "services/parameter_server/core/replication/entry_log.h"

#include <algorithm>
#include <utility>

namespace adamant::parameter_server {

bool EntryLog::MustPersist(const Entry& entry) const {
  return logging_ == Logging::kAll || (logging_ == Logging::kRecords && !entry.puts.empty());
}

std::uint64_t EntryLog::Keep(const EntryPtr& entry) {
  log_.push_back(entry);
  log_bytes_ += entry->bytes;
  std::uint64_t ticket = 0;
  if (MustPersist(*entry)) {
    ticket = ++last_ticket_;
    storing_.push_back(ticket);
  }
  AdvancePersisted();
  return ticket;
}

bool EntryLog::Has(const Entry& entry) const {
  const std::size_t index = entry.lsn - committed_ - 1;
  return index < log_.size() && log_[index]->origin == entry.origin;
}

void EntryLog::CutFrom(Lsn lsn) {
  const std::size_t index = lsn - committed_ - 1;
  while (log_.size() > index) {
    if (prepared() > persisted_ && MustPersist(*log_.back())) {
      storing_.pop_back();
    }
    log_bytes_ -= log_.back()->bytes;
    log_.pop_back();
  }
  persisted_ = std::min(persisted_, lsn - 1);
}

EntryPtr EntryLog::CommitNext() {
  EntryPtr entry = std::move(log_.front());
  log_.pop_front();
  log_bytes_ -= entry->bytes;
  ++committed_;
  committed_origin_ = entry->origin;
  if (!entry->updates.empty()) {
    first_unflushed_ = IsFlushed() ? committed_ : first_unflushed_;
    changed_ = committed_;
  }
  return entry;
}

bool EntryLog::OnPersisted(std::uint64_t ticket) {
  if (storing_.empty() || storing_.front() != ticket) {
    return false;
  }
  storing_.pop_front();
  ++persisted_;
  AdvancePersisted();
  return true;
}

void EntryLog::AdvancePersisted() {
  while (persisted_ < prepared() && !MustPersist(*log_[persisted_ - committed_])) {
    ++persisted_;
  }
}

void EntryLog::OnFlushed(Lsn lsn) { flushed_ = std::max(flushed_, lsn); }

Lsn EntryLog::OnDisk() const {
  return IsFlushed() ? committed_ : std::max(flushed_, first_unflushed_ - 1);
}

void EntryLog::Clear() {
  committed_ = 0;
  committed_origin_ = 0;
  persisted_ = 0;
  changed_ = 0;
  first_unflushed_ = 0;
  flushed_ = 0;
  storing_.clear();
  log_.clear();
  log_bytes_ = 0;
}

void EntryLog::BeginAt(Lsn base, ConfigurationVersion origin) {
  Clear();
  committed_ = base;
  committed_origin_ = origin;
  persisted_ = base;
  flushed_ = base;  // the copy counts when it is on disk
}

}  // namespace adamant::parameter_server
