#pragma once

#include <cstdint>
#include <deque>

#include "services/parameter_server/core/replication/messages.h"

namespace adamant::parameter_server {

/// The log of one replica: which entries it has, which of them are committed, and what is on its
/// server's disk. Entries are opaque, but for what they ask of the disk.
/// Threads: one at a time.
class EntryLog {
 public:
  /// Choice of the entries that count only when they are stored.
  enum class Logging : std::uint8_t { kNothing, kRecords, kAll };

  explicit EntryLog(Logging logging) : logging_(logging) {}

  [[nodiscard]] Lsn committed() const { return committed_; }

  /// Returns the configuration version under which the last committed entry was appended; 0: there
  /// is none.
  [[nodiscard]] ConfigurationVersion committed_origin() const { return committed_origin_; }

  [[nodiscard]] Lsn prepared() const { return committed_ + log_.size(); }

  /// Returns up to where all that must be stored is.
  [[nodiscard]] Lsn persisted() const { return persisted_; }

  /// Returns the entries prepared and not committed, in order.
  [[nodiscard]] const std::deque<EntryPtr>& entries() const { return log_; }
  [[nodiscard]] std::uint64_t bytes() const { return log_bytes_; }

  /// Returns the entry at `lsn`, which is prepared and not committed.
  [[nodiscard]] const EntryPtr& At(Lsn lsn) const { return log_[lsn - committed_ - 1]; }

  /// Takes an entry behind the others. Returns the ticket under which it is to be stored; 0: it
  /// need not be. Tickets rise, and are to be stored in their order.
  std::uint64_t Keep(const EntryPtr& entry);

  /// Returns true if `entry`, which is behind what is committed, is there: the same one.
  [[nodiscard]] bool Has(const Entry& entry) const;

  /// Forgets what is prepared from `lsn` on, which is to be overwritten.
  void CutFrom(Lsn lsn);

  /// Commits the next entry, and returns it.
  EntryPtr CommitNext();

  /// Notes that what was to be stored under this ticket is. Returns false if that was an entry that
  /// has been overwritten or forgotten since.
  bool OnPersisted(std::uint64_t ticket);

  /// All that was committed up to `lsn` is on the disk, without the log.
  void OnFlushed(Lsn lsn);

  /// Returns up to where all that was committed is on the disk. What comes before the first change
  /// that it lacks changes nothing that it has to hold.
  [[nodiscard]] Lsn OnDisk() const;

  /// Returns whether all updates that are committed are known to be flushed.
  [[nodiscard]] bool IsFlushed() const { return flushed_ >= changed_; }

  /// Forgets all.
  void Clear();

  /// Forgets all, and begins behind `base`, whose entry has this origin: a copy of what was
  /// committed up to there follows.
  void BeginAt(Lsn base, ConfigurationVersion origin);

 private:
  [[nodiscard]] bool MustPersist(const Entry& entry) const;
  void AdvancePersisted();

  const Logging logging_;
  Lsn committed_ = 0;
  ConfigurationVersion committed_origin_ = 0;
  std::deque<EntryPtr> log_;  // entries committed_ + 1, …
  std::uint64_t log_bytes_ = 0;
  Lsn persisted_ = 0;
  std::deque<std::uint64_t> storing_;  // tickets of what must be stored behind it, in order
  std::uint64_t last_ticket_ = 0;
  Lsn changed_ = 0;          // last committed entry with updates, which are what a flush is for
  Lsn first_unflushed_ = 0;  // the first one since all were flushed; counts while changed_ is not
  Lsn flushed_ = 0;
};

}  // namespace adamant::parameter_server
